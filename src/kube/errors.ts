/** What can go wrong between us and the API server, as one class. */
import type { Status } from '../gen/kube.ts';

/** An answer that is not a success. Branch on `code` and `reason`; `message` is for people. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: number;
  readonly reason: string;
  /** The server's own words. */
  readonly said: string;
  /** How long the server asked us to stay away. */
  readonly retryAfterMs: number | undefined;

  constructor(request: string, code: number, status: Partial<Status>, retryAfterMs?: number) {
    super(`${request}: ${code} ${status.reason ?? ''}: ${status.message ?? 'no message'}`);
    this.code = code;
    this.reason = status.reason ?? 'Unknown';
    this.said = status.message ?? 'no message';
    this.retryAfterMs = retryAfterMs;
  }
}

export const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404;
/** A precondition did not hold, or the name is taken: what we decided on was stale. */
export const isConflict = (error: unknown): boolean => error instanceof ApiError && error.code === 409;
export const isGone = (error: unknown): boolean => error instanceof ApiError && error.code === 410;
/** Refused for what it asks: a policy, a quota, a limit. Trying again helps only after somebody has changed something. */
export const isRefusal = (error: unknown): error is ApiError =>
  error instanceof ApiError && [400, 403, 422].includes(error.code);
/** The server does not know the request as such, e.g. an option that is newer than it. */
export const isRefusedRequest = (error: unknown): boolean =>
  error instanceof ApiError && (error.code === 400 || error.code === 422);
