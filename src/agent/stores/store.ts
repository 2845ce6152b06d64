/** Where snapshots are kept: one small interface, and one implementation for each kind of place. */
import type { Place } from '../../domain/agent-task.ts';
import { secretFile } from '../secrets.ts';

export interface StoredObject {
  readonly key: string;
  readonly size: number;
  /** Of the snapshot that it belongs to. A listing does not always tell. */
  readonly uid?: string;
}

export interface PutOptions {
  /** Kept with the object: who may replace it later. */
  readonly uid: string;
  /** Over an object with the same uid; one with another, or none, is never replaced. */
  readonly replace: boolean;
  readonly signal: AbortSignal;
  readonly contentType?: string;
  /** As far as it is known: very large objects need larger pieces. */
  readonly expectedBytes?: number;
}

/** Keys are whole. Every failure is an AgentFailure, but one of the body, which passes as it is. */
export interface Store {
  /** `undefined`: it is not there. */
  head(key: string): Promise<StoredObject | undefined>;
  /** Nothing is to be seen under the key before it is whole. When the body throws or the signal aborts, nothing stays. */
  put(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions): Promise<void>;
  get(key: string, signal: AbortSignal): Promise<{ readonly size: number; readonly body: AsyncIterable<Uint8Array> }>;
  /** All keys that begin so, in the order of keys. */
  list(prefix: string): AsyncIterable<StoredObject>;
  /** It is fine if it is not there. */
  delete(key: string): Promise<void>;
  /** For people. */
  uri(key: string): string;
}

/** A file of a mounted Secret: the mount, as in MOUNTS, and the key. */
export type ReadSecret = (mount: string, key: string) => Promise<Buffer | undefined>;

/** Each library is loaded only where it is needed: together they take a second and 40 MiB. */
export async function openStore(place: Place, secrets: ReadSecret = secretFile): Promise<Store> {
  switch (place.kind) {
    case 's3':
      return (await import('./s3.ts')).openS3(place, secrets);
    case 'gcs':
      return (await import('./gcs.ts')).openGcs(place, secrets);
    case 'azure':
      return (await import('./azure.ts')).openAzure(place, secrets);
    case 'pvc':
      return (await import('./pvc.ts')).openVolume(place.root);
  }
}
