/** A folder of a store with snapshots of one schedule, for the suites about retention. */

import { type Manifest, manifestText } from '../../../src/agent/format/manifest.ts';
import type { KeyRing } from '../../../src/agent/format/seal-key.ts';
import type { Store } from '../../../src/agent/stores/store.ts';
import { prune } from '../../../src/agent/tasks/prune.ts';
import { MANIFEST, type Place, type PruneTask } from '../../../src/domain/agent-task.ts';

export const HOUR = 3_600_000;
export const NOW = Date.parse('2026-03-01T12:00:00Z');
export const CLUSTER = { name: 'db', uid: 'cluster-uid' };
export const SCHEDULE = { name: 'hourly', uid: 'schedule-uid' };
export const DATA = Buffer.from('a database');
const NEVER = new AbortController().signal;

export const nameAt = (hoursAgo: number, of = SCHEDULE.name): string =>
  `${of}-${new Date(NOW - hoursAgo * HOUR).toISOString().replace(/\D/g, '').slice(0, 12)}`;

export const manifestOf = (object: string, hoursAgo: number, patch: Partial<Manifest> = {}): Manifest => ({
  version: 1,
  object: { key: object, sizeBytes: DATA.length, sha256: 'a'.repeat(64) },
  database: { sizeBytes: DATA.length, sha256: 'a'.repeat(64) },
  snapshot: { namespace: 'ns', name: object.replace('.db', ''), uid: `uid-${object}` },
  cluster: { ...CLUSTER, id: 'cafe000000000001' },
  schedule: SCHEDULE,
  revision: 1,
  totalKeys: 1,
  etcdVersion: '3.6.1',
  authEnabled: false,
  member: 'db-0',
  compression: 'none',
  takenAt: new Date(NOW - hoursAgo * HOUR).toISOString(),
  durationMs: 1,
  ...patch,
});

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

export interface Suite {
  readonly store: Store;
  /** An object that no agent has written. */
  readonly putByOthers: (key: string, content: string) => Promise<void>;
}

/** Everything below a prefix of its own. */
export function folder({ store, putByOthers }: Suite, prefix: string) {
  const put = (key: string, bytes: Uint8Array, uid: string, schedule?: string): Promise<void> =>
    store.put(`${prefix}/${key}`, once(bytes), { uid, schedule, replace: false, signal: NEVER });
  const reported: string[] = [];
  return {
    prefix,
    store,
    reported,
    put,
    putByOthers: (key: string) => putByOthers(`${prefix}/${key}`, DATA.toString()),
    snapshot: async (
      hoursAgo: number,
      patch: Partial<Manifest> = {},
      stored: {
        readonly of?: string;
        readonly data?: Uint8Array | undefined;
        readonly uid?: string;
        readonly schedule?: string;
      } = { data: DATA },
    ): Promise<string> => {
      const name = `${nameAt(hoursAgo, stored.of)}.db`;
      const manifest = manifestOf(name, hoursAgo, patch);
      if (stored.data) await put(name, stored.data, stored.uid ?? manifest.snapshot.uid, stored.schedule);
      await put(`${name}${MANIFEST}`, Buffer.from(manifestText(manifest)), manifest.snapshot.uid);
      return name;
    },
    run: (
      retention: PruneTask['retention'],
      {
        at = store,
        signal = NEVER,
        keys,
        ...more
      }: { at?: Store; signal?: AbortSignal; keys?: KeyRing } & Partial<Omit<PruneTask, 'at'>> = {},
    ) => {
      const place: Place = { kind: 'pvc', root: '/' };
      const names = { cluster: CLUSTER, schedule: SCHEDULE };
      return prune(
        at,
        { task: 'prune', at: place, prefix, ...names, retention, now: NOW, ...more },
        (line) => reported.push(line),
        signal,
        keys,
      );
    },
    keys: async (): Promise<readonly string[]> => {
      const found: string[] = [];
      for await (const { key } of store.list(`${prefix}/`)) found.push(key.slice(prefix.length + 1));
      return found;
    },
  };
}

/** The store with one method replaced. */
export const withMethod = <Name extends keyof Store>(
  store: Store,
  name: Name,
  method: (of: Store) => Store[Name],
): Store =>
  new Proxy(store, {
    get: (target, asked: keyof Store) =>
      asked === name ? method(target) : (target[asked] as (...args: readonly unknown[]) => unknown).bind(target),
  });

export const both = (name: string): readonly string[] => [name, `${name}${MANIFEST}`];

export type Case = readonly [name: string, holds: (it: ReturnType<typeof folder>) => Promise<void>];
