/** What can go wrong between us and the API server, as one class. */
import type { Status } from '../gen/kube.ts';

/** Reasons of our own, with code 0: there was no answer. */
export type NoAnswer = 'Unreachable' | 'Timeout' | 'Aborted' | 'Garbled' | 'NotLeading';

/** Anything but a success. Branch on `code` and `reason`; `message` is for people. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status; 0 when there was no answer, and then nobody knows whether a write happened. */
  readonly code: number;
  readonly reason: string;
  /** The server's own words. */
  readonly said: string;
  /** How long the server asked us to stay away. */
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
    this.said = status.message ?? 'no message';
    this.retryAfterMs = more.retryAfterMs;
  }
}

/** There was no answer, or not a whole one. */
export const noAnswer = (request: string, reason: NoAnswer, cause: unknown): ApiError =>
  new ApiError(request, 0, { reason, message: sentence(cause) }, { cause });

function sentence(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : '';
  return (
    [cause.message, cause.message.includes(code) ? '' : code].filter((part) => part !== '').join(' ') || cause.name
  );
}

const isReason =
  (reason: NoAnswer) =>
  (error: unknown): boolean =>
    error instanceof ApiError && error.code === 0 && error.reason === reason;

export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404;
/** A precondition did not hold, or the name is taken: what we decided on was stale. */
export const isConflict = (error: unknown): boolean => error instanceof ApiError && error.code === 409;
export const isGone = (error: unknown): boolean => error instanceof ApiError && error.code === 410;
export const isUnauthorized = (error: unknown): boolean => error instanceof ApiError && error.code === 401;
/** Refused for what it asks: a policy, a quota, a limit. Trying again helps only after somebody has changed something. */
export const isRefusal = (error: unknown): error is ApiError =>
  error instanceof ApiError && ([400, 403, 422].includes(error.code) || isUnasked(error));
/** Whoever is to be asked first, such as the webhook of cert-manager, does not answer: of all else the server is well. */
const isUnasked = ({ code, said }: ApiError): boolean => code === 500 && said.includes('failed calling webhook');
/** The server does not know the request as such, e.g. an option that is newer than it. */
export const isRefusedRequest = (error: unknown): boolean =>
  error instanceof ApiError && (error.code === 400 || error.code === 422);
/** A write that was not sent, because this process may not write any more. */
export const isNotLeading = isReason('NotLeading');
export const isUnreachable = isReason('Unreachable');
export const isTimeout = isReason('Timeout');
