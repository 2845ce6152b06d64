/** From what a library threw to what a person can act on. */
import type { FailureReason } from '../../domain/agent-result.ts';
import { AgentFailure } from '../failure.ts';
import { type ErrorInfo, errorInfo, errorInfoText, isPassing } from './error-info.ts';
import { BodyFailure } from './multipart.ts';
import { NO_STORE, NO_STORE_WORDS } from './ssrf-guard.ts';

/** The words of one store. */
export interface ErrorPhrases {
  /** Such as `the bucket "backups" at https://s3.example.org`. */
  readonly place: string;
  /** What credentials have to be allowed to do. */
  readonly rights: string;
  /** The service's codes that say more than their status. A sentence without its beginning: what is wrong and what to do. */
  readonly codes: Readonly<Record<string, readonly [reason: FailureReason, sentence: string]>>;
}

/** What put makes of a failure of its body is the body's own error. */
export function errorMessage(error: unknown, words: ErrorPhrases, key: string): unknown {
  if (error instanceof AgentFailure) return error;
  if (error instanceof BodyFailure) return error.cause;
  const found = errorInfo(error);
  const [reason, sentence] = meaning(found, words);
  return new AgentFailure(reason, `${words.place}, ${key === '' ? 'every key' : `key "${key}"`}: ${sentence}`);
}

function meaning(found: ErrorInfo, { codes, rights }: ErrorPhrases): readonly [FailureReason, string] {
  const { status = 0, code = '', network, tls } = found;
  const known = codes[code];
  if (known) return known;
  if (code === NO_STORE) return ['Misconfigured', NO_STORE_WORDS];
  const said = `(${errorInfoText(found)})`;
  if (tls !== undefined)
    return [
      'Misconfigured',
      `its certificate is not trusted ${said}: check the endpoint and the authorities that are given`,
    ];
  if (status === 401 || status === 403)
    return ['AccessDenied', `access is denied ${said}: check the credentials; ${rights}`];
  if (status === 404) return ['ObjectNotFound', `it is not there ${said}`];
  if (status === 409 || status === 412)
    return ['ObjectExists', `somebody else wrote it meanwhile ${said}, and that is left alone`];
  if (status === 413 || status === 507) return ['NoSpace', `there is no room for it ${said}`];
  if (network !== undefined || isPassing(found))
    return ['StoreUnreachable', `the service does not answer ${said}: check the endpoint and what may connect to it`];
  if (status >= 300 && status < 400)
    return ['Misconfigured', `the service redirects ${said}, which is not followed: check the endpoint and the region`];
  if (status >= 400)
    return ['Misconfigured', `the service refuses the request ${said}: check the endpoint and its options`];
  return ['Internal', `an unexpected error ${said}`];
}
