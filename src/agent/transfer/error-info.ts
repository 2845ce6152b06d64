/**
 * What went wrong in a call to a service, whichever library made it: the few parts that suffice to decide and are safe
 * to report.
 */

export interface ErrorInfo {
  /** The HTTP status. */
  readonly status?: number;
  /** The service's error code, such as NoSuchBucket. */
  readonly code?: string;
  readonly network?: string;
  readonly tls?: string;
}

/** An unexpected response of a service whose library does not throw one. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string) {
    super(`${status} ${code}`);
    this.status = status;
    this.code = code;
  }
}

const NETWORK = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOTFOUND',
  'EAI_AGAIN',
  'TimeoutError',
  'REQUEST_SEND_ERROR',
  'ERR_STREAM_PREMATURE_CLOSE',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);
const TLS = /^(CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|HOSTNAME_MISMATCH$|EPROTO$)/;
const WORD = /^[A-Za-z][A-Za-z0-9._-]{1,60}$/;
/** Names that libraries give to unknown errors. */
const NOTHING = new Set(['Error', 'TypeError', 'RestError', 'Unknown', 'UnknownError', 'AbortError']);
const DEPTH = 5;

interface Raw {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: unknown };
  /** Where Azure's library has the code when the response had no body. */
  readonly details?: { readonly errorCode?: unknown };
  readonly cause?: unknown;
  readonly errors?: readonly unknown[];
}

/** Of each field, the outermost error that has it. */
export function errorInfo(error: unknown): ErrorInfo {
  const found: { -readonly [K in keyof ErrorInfo]: ErrorInfo[K] } = {};
  let next = error;
  for (let depth = 0; depth < DEPTH && typeof next === 'object' && next !== null; depth++) {
    const raw = next as Raw;
    const status = [raw.$metadata?.httpStatusCode, raw.statusCode, raw.status].find((each) => typeof each === 'number');
    if (status !== undefined) found.status ??= status;
    for (const word of [raw.code, raw.details?.errorCode, raw.name]) {
      if (typeof word !== 'string' || !WORD.test(word) || NOTHING.has(word)) continue;
      if (NETWORK.has(word)) found.network ??= word;
      else if (TLS.test(word)) found.tls ??= word;
      else found.code ??= word;
    }
    next = raw.cause ?? raw.errors?.[0];
  }
  return found;
}

const AGAIN = new Set([408, 425, 429, 500, 502, 503, 504]);

/** The last is S3's 409 for a conditional write beside another write of the key; its 412 means that the key exists. */
const PASSING_CODES = new Set(['RequestTimeout', 'SlowDown', 'ConditionalRequestConflict']);

/** Whether a retry may succeed. */
export const isPassing = ({ status, network, tls, code }: ErrorInfo): boolean =>
  tls === undefined &&
  (status === undefined ? network !== undefined : AGAIN.has(status) || PASSING_CODES.has(code ?? ''));

/** Whether a port is closed, filtered or silent is not reported: a tenant could scan the network of the cluster. */
const networkText = (code: string): string => (/^(ENOTFOUND|EAI_AGAIN)$/.test(code) ? code : 'no connection');

/** For a message: nothing else of the error is reported. */
export const errorInfoText = ({ status, code, network, tls }: ErrorInfo): string =>
  [status, code, network === undefined ? tls : networkText(network)].filter((part) => part !== undefined).join(' ') ||
  'unknown cause';
