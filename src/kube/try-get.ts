/** A GET whose failure is a value: one object that cannot be read must not fail the whole reconcile. */
import type { Client } from './client.ts';
import { ApiError } from './errors.ts';
import { limitTo } from './limit.ts';
import type { KubeObject, Ref, Resource } from './object.ts';

export type ReadResult<T> =
  | { readonly ok: true; readonly object: T | undefined }
  /** The status code and a short message; never the content of the object. */
  | { readonly ok: false; readonly message: string };

/** The client's own limit is 15 s: a reconcile that waited that long would repair and report nothing meanwhile. */
const READ_TIMEOUT_MS = 5_000;
const MAX_MESSAGE = 300;

export async function tryGet<T extends KubeObject>(
  client: Pick<Client, 'get'>,
  resource: Resource<T>,
  ref: Ref,
  signal?: AbortSignal,
): Promise<ReadResult<T>> {
  const limit = limitTo(READ_TIMEOUT_MS, signal);
  try {
    return { ok: true, object: await client.get(resource, ref, limit.signal) };
  } catch (error) {
    // The reconcile itself has ended, or this is a bug: neither is a statement about the object.
    if (signal?.aborted || !(error instanceof ApiError)) throw error;
    return { ok: false, message: limit.passed ? `no response within ${READ_TIMEOUT_MS / 1_000} s` : messageOf(error) };
  } finally {
    limit.done();
  }
}

/**
 * Without a status code only the reason: a parser's message about a garbled response quotes it, and it may be a Secret.
 */
const messageOf = ({ code, reason, serverMessage }: ApiError): string =>
  code === 0 ? `no response (${reason})` : `${code} ${serverMessage.slice(0, MAX_MESSAGE)}`;
