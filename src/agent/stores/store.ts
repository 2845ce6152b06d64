/** Where snapshots are stored: one small interface, and one implementation per kind of storage. */
import type { Place } from '../../domain/agent-task.ts';
import { secretFile } from '../secrets.ts';

export interface StoredObject {
  readonly key: string;
  readonly size: number;
  /** uid of the snapshot that it belongs to. A listing does not always contain it. */
  readonly uid?: string;
  /** uid of the schedule that the snapshot was taken for. Earlier agents did not store it. */
  readonly schedule?: string;
  /** Of the put call that wrote it: an object with the same one, under whatever name of the store, is this object. */
  readonly upload?: string;
}

export interface PutOptions {
  /** Stored with the object: only the same uid may replace it later. */
  readonly uid: string;
  /** Stored with the object: the retention of another schedule never deletes it. */
  readonly schedule?: string | undefined;
  /** Replaces an object with the same uid; one with another, or none, is never replaced. */
  readonly replace: boolean;
  readonly signal: AbortSignal;
  readonly contentType?: string;
  /** As far as it is known: very large objects need larger parts. */
  readonly expectedBytes?: number;
}

export interface Download {
  readonly size: number;
  readonly body: AsyncIterable<Uint8Array>;
}

export type Deletion = 'deleted' | 'hidden';

/** Keys are complete. Every failure is an AgentFailure, except for a failure of the body, which is passed on. */
export interface Store {
  /** `undefined`: it does not exist. */
  head(key: string): Promise<StoredObject | undefined>;
  /**
   * The object is not visible before it is complete. When the body throws or the signal aborts, nothing is left behind.
   */
  put(key: string, body: AsyncIterable<Uint8Array>, options: PutOptions): Promise<void>;
  get(key: string, signal: AbortSignal): Promise<Download>;
  /** All keys with this prefix, sorted. */
  list(prefix: string): AsyncIterable<StoredObject>;
  /** Succeeds when the object does not exist. `hidden`: the store keeps the bytes, as a version of a deleted object. */
  delete(key: string): Promise<Deletion>;
  /**
   * Removes what killed agents left of uploads to keys with this prefix, and have not touched since `before`
   * (milliseconds since 1970). Returns how many. Services that expire unfinished uploads themselves have none.
   */
  removeUnfinished(prefix: string, before: number): Promise<number>;
  /** For messages. */
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
