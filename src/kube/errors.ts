/** How calls to the API server fail, as one class. */
import type { Status } from '../gen/kube.ts';

/** The operator's own reasons, with code 0: the API server did not respond. */
export type NoAnswer = 'Unreachable' | 'Timeout' | 'Aborted' | 'Garbled' | 'NotLeading';

/** Any response but a success. Branch on `code` and `reason`; `message` is for users. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status; 0 without a response, and then it is unknown whether a write was carried out. */
  readonly code: number;
  readonly reason: string;
  /** The API server's own message. */
  readonly serverMessage: string;
  /** The API server's Retry-After. */
  readonly retryAfterMs: number | undefined;

  constructor(
    request: string,
    code: number,
    status: Partial<Status>,
    more: { readonly retryAfterMs?: number | undefined; readonly cause?: unknown } = {},
  ) {
    super(`${request}: ${code === 0 ? '' : `${code} `}${status.reason ?? ''}: ${status.message ?? 'no message'}`, {
      cause: more.cause,
    });
    this.code = code;
    this.reason = status.reason ?? 'Unknown';
    this.serverMessage = status.message ?? 'no message';
    this.retryAfterMs = more.retryAfterMs;
  }
}

/** The API server did not respond, or not completely. */
export const noAnswer = (request: string, reason: NoAnswer, cause: unknown): ApiError =>
  new ApiError(request, 0, { reason, message: sentence(cause) }, { cause });

function sentence(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
  return (
    [cause.message, cause.message.includes(code) ? '' : code].filter((part) => part !== '').join(' ') || cause.name
  );
}

export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404;
/** A precondition failed (409) or the name is taken: the decision was made on a stale object. */
export const isConflict = (error: unknown): boolean => error instanceof ApiError && error.code === 409;
export const isGone = (error: unknown): boolean => error instanceof ApiError && error.code === 410;
export const isUnauthorized = (error: unknown): boolean => error instanceof ApiError && error.code === 401;
/** The operator's roles do not grant the request. */
export const isForbidden = (error: unknown): boolean => error instanceof ApiError && error.code === 403;
/**
 * Refused because of its content: a policy, a quota, a limit. A retry succeeds only after a user has changed something.
 */
export const isRefusal = (error: unknown): error is ApiError =>
  error instanceof ApiError && ([400, 403, 422].includes(error.code) || isUnasked(error));
/** An admission webhook, such as cert-manager's, does not respond; the API server itself is healthy. */
const isUnasked = ({ code, serverMessage }: ApiError): boolean =>
  code === 500 && serverMessage.includes('failed calling webhook');
/** The API server does not know the request, e.g. an option that is newer than it. */
export const isRefusedRequest = (error: unknown): boolean =>
  error instanceof ApiError && (error.code === 400 || error.code === 422);
/** A write that was not sent because this process no longer holds the Lease. */
export const isNotLeading = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 0 && error.reason === 'NotLeading';
