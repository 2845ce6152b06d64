/** From what a library threw to a message that a user can act on. */
import type { FailureReason } from '../../domain/agent-result.ts';
import { AgentFailure } from '../failure.ts';
import { type ErrorInfo, errorInfo, errorInfoText, isPassing } from './error-info.ts';
import { BodyFailure } from './multipart.ts';
import { NO_STORE, NO_STORE_MESSAGE } from './ssrf-guard.ts';

/** The phrases of one store. */
export interface ErrorPhrases {
  /** Such as `the bucket "backups" at https://s3.example.org`. */
  readonly place: string;
  /** The permissions that the credentials need. */
  readonly permissions: string;
  /**
   * The service's codes that are more specific than their status. The end of a sentence: what is wrong and what to do.
   */
  readonly codes: Readonly<Record<string, readonly [reason: FailureReason, sentence: string]>>;
}

/** For each code with which a service refuses to delete what it has to keep. */
export const LOCKED = [
  'ObjectLocked',
  'the store keeps it until its retention or legal hold ends: it is deleted after that',
] as const satisfies readonly [FailureReason, string];

/** A failure of put's body is the body's own error. */
export function errorMessage(error: unknown, phrases: ErrorPhrases, key: string): unknown {
  if (error instanceof AgentFailure) return error;
  if (error instanceof BodyFailure) return error.cause;
  const found = errorInfo(error);
  const [reason, sentence] = meaning(found, phrases);
  return new AgentFailure(reason, `${phrases.place}, ${key === '' ? 'every key' : `key "${key}"`}: ${sentence}`);
}

function meaning(found: ErrorInfo, { codes, permissions }: ErrorPhrases): readonly [FailureReason, string] {
  const { status = 0, code = '', network, tls } = found;
  const known = codes[code];
  if (known) return known;
  if (code === NO_STORE) return ['Misconfigured', NO_STORE_MESSAGE];
  const detail = `(${errorInfoText(found)})`;
  if (tls !== undefined)
    return ['Misconfigured', `its certificate is not trusted ${detail}: check the endpoint and the CA`];
  if (status === 401 || status === 403)
    return ['AccessDenied', `access is denied ${detail}: check the credentials; ${permissions}`];
  if (status === 404) return ['ObjectNotFound', `the object does not exist ${detail}`];
  if (!isPassing(found) && (status === 409 || status === 412))
    return ['ObjectExists', `another process wrote it meanwhile ${detail}; it was not overwritten`];
  if (status === 413 || status === 507)
    return ['NoSpace', `no space left ${detail}: enlarge the store, or remove old snapshots`];
  if (network !== undefined || isPassing(found))
    return ['StoreUnreachable', `the service does not respond ${detail}: check the endpoint, DNS and network policies`];
  if (status >= 300 && status < 400)
    return [
      'Misconfigured',
      `the service redirects ${detail}, which is not followed: check the endpoint and the region`,
    ];
  if (status >= 400)
    return ['Misconfigured', `the service refuses the request ${detail}: check the endpoint and its options`];
  return ['Internal', `an unexpected error ${detail}`];
}
