/**
 * The few calls to Google Cloud Storage that a store needs. Google's own storage library follows every redirect and
 * most of its calls cannot be aborted; only its library for tokens is used.
 */
import { GoogleAuth, JWT } from 'google-auth-library';
import { Agent, type Dispatcher, request } from 'undici';
import { MOUNTS, type Place } from '../../domain/agent-task.ts';
import { AgentFailure, misconfigured } from '../failure.ts';
import { Refusal } from '../transfer/error-info.ts';
import { checkEndpoint, guardedLookup } from '../transfer/ssrf-guard.ts';
import { trusting } from './ca.ts';
import { requireNamed, requireOwn } from './own-endpoint.ts';
import type { ReadSecret } from './store.ts';

export type GcsPlace = Extract<Place, { readonly kind: 'gcs' }>;

export interface Call {
  readonly method?: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
  readonly signal: AbortSignal;
  /** Statuses that are expected; all others are thrown. */
  readonly wanted: readonly number[];
}

type Authorization = () => Promise<Headers>;

const GOOGLE = 'https://storage.googleapis.com';
const OWN = ['.googleapis.com'];
const SCOPES = ['https://www.googleapis.com/auth/devstorage.read_write'];
const CONNECT_AND_ANSWER_MS = 300_000;
const SILENCE_MS = 60_000;

export class GcsClient {
  readonly base: URL;
  readonly #authorization: Authorization;
  readonly #dispatcher: Agent;

  constructor(base: URL, authorization: Authorization, tls: { readonly ca?: string[] }) {
    this.base = base;
    this.#authorization = authorization;
    this.#dispatcher = new Agent({ connect: { lookup: guardedLookup, ...tls } });
  }

  /** One attempt. Redirects are returned, not followed. */
  async call(url: URL, { method = 'GET', headers, body, signal, wanted }: Call): Promise<Dispatcher.ResponseData> {
    const answer = await request(url, {
      method,
      headers: { ...Object.fromEntries(await this.#authorization()), ...headers },
      body: body ?? null,
      signal,
      dispatcher: this.#dispatcher,
      headersTimeout: CONNECT_AND_ANSWER_MS,
      bodyTimeout: SILENCE_MS,
    });
    if (wanted.includes(answer.statusCode)) return answer;
    throw new Refusal(answer.statusCode, await reasonOf(answer));
  }

  /**
   * `path` with encoded query values. Resolved as a relative reference, an endpoint such as https://storage.googleapis.com//other.example
   * would be a URL at the other host, and that host would get the token.
   */
  url(path: string, query: Readonly<Record<string, string | undefined>> = {}): URL {
    const url = new URL(this.base.origin);
    url.pathname = `${this.base.pathname.replace(/\/$/, '')}${path}`;
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
    return url;
  }
}

/** Google's error code, or undefined: its text is not fit for a status. */
async function reasonOf({ body }: Dispatcher.ResponseData): Promise<string> {
  const { error } = (await body.json().catch(() => ({}))) as {
    error?: { message?: unknown; errors?: { reason?: string }[] };
  };
  const reason = error?.errors?.[0]?.reason ?? '';
  return reason === 'forbidden' && typeof error?.message === 'string' && HELD.test(error.message) ? UNDER_HOLD : reason;
}

/** As it is documented. */
export const UNDER_HOLD = 'objectUnderActiveHold';
/** The service words it so, with the code of a missing permission. */
const HELD = /\bunder active [\w-]+ hold\b/i;

export async function gcsClient(place: GcsPlace, secrets: ReadSecret): Promise<GcsClient> {
  const base = URL.parse(place.endpoint ?? GOOGLE);
  if (!base || !/^https?:$/.test(base.protocol))
    throw misconfigured('the endpoint of the bucket is not a URL such as https://storage.example.org');
  checkEndpoint(base);
  if (place.credentials === 'ambient') requireOwn(base, OWN);
  const authorization = place.credentials === 'secret' ? await keyFile(base, secrets) : ambient();
  return new GcsClient(base, authorization, await trusting(place, secrets));
}

const ENDPOINT = 'GCS_ENDPOINT';

/**
 * The key signs the tokens itself: no server but the endpoint is called, and the file cannot name other servers. Such a token is
 * valid at Google for an hour, whichever server has received it.
 */
async function keyFile(base: URL, secrets: ReadSecret): Promise<Authorization> {
  const named = (await secrets(MOUNTS.credentials, ENDPOINT))?.toString('utf8').trim() ?? '';
  requireNamed(base, OWN, { what: 'a token of the service account', key: ENDPOINT, named });
  const wrong = (what: string) =>
    misconfigured(
      `"credentials.json" of the Secret for the bucket ${what}: put the JSON key file of a service account there`,
    );
  const text = (await secrets(MOUNTS.credentials, 'credentials.json'))?.toString('utf8');
  if (text === undefined) throw wrong('is missing');
  let key: { type?: unknown; client_email?: unknown; private_key?: unknown; private_key_id?: unknown };
  try {
    key = JSON.parse(text) as typeof key;
  } catch {
    throw wrong('is not JSON');
  }
  const { client_email: email, private_key: secret, private_key_id: id } = key ?? {};
  if (key?.type !== 'service_account' || typeof email !== 'string' || typeof secret !== 'string')
    throw wrong('is not the key of a service account');
  const jwt = new JWT({ email, key: secret, ...(typeof id === 'string' && { keyId: id }), scopes: SCOPES });
  jwt.useJWTAccessWithScope = true;
  try {
    await jwt.getRequestHeaders();
  } catch {
    throw wrong('has a private key that cannot sign');
  }
  return () => jwt.getRequestHeaders();
}

function ambient(): Authorization {
  const auth = new GoogleAuth({ scopes: SCOPES });
  return async () => {
    const client = await auth.getClient().catch((error: unknown) => {
      throw new AgentFailure(
        'Misconfigured',
        'the Pod has no cloud credentials: set a Secret with credentials, or a service account with a workload identity',
        { cause: error },
      );
    });
    return client.getRequestHeaders();
  };
}
