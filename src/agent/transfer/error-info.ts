/** What went wrong in a call to a service, whichever library made it: the few parts that are enough to decide by and safe to show. */

export interface ErrorInfo {
  /** Of HTTP. */
  readonly status?: number;
  /** The service's own word for it, such as NoSuchBucket. */
  readonly code?: string;
  readonly network?: string;
  readonly tls?: string;
}

/** A service's answer that is not the wanted one, of those that no library makes an error of. */
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
/** What libraries call an error when they know no better. */
const NOTHING = new Set(['Error', 'TypeError', 'RestError', 'Unknown', 'UnknownError', 'AbortError']);
const DEPTH = 5;

interface Raw {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: unknown };
  /** Where Azure's library has it when the answer had no text. */
  readonly details?: { readonly errorCode?: unknown };
  readonly cause?: unknown;
  readonly errors?: readonly unknown[];
}

/** The outermost error that says something, of each part. */
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

/** Whether the same call may succeed in a moment. */
export const isPassing = ({ status, network, tls, code }: ErrorInfo): boolean =>
  tls === undefined &&
  (status === undefined
    ? network !== undefined
    : AGAIN.has(status) || code === 'RequestTimeout' || code === 'SlowDown');

/** For a message: never more than these words. */
export const errorInfoText = ({ status, code, network, tls }: ErrorInfo): string =>
  [status, code, network ?? tls].filter((part) => part !== undefined).join(' ') || 'for an unknown cause';
