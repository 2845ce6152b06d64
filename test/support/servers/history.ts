/** The true history of the objects of a kind and namespace, from the API server's own etcd: faults do not affect it. */

import { isAtLeast, type Resource } from '../../../src/kube/object.ts';
import { UserClient } from '../etcd-client.ts';

export interface Change {
  /** `namespace/name`. */
  readonly key: string;
  readonly version: string;
  readonly is: 'put' | 'delete';
}

export interface History {
  readonly changes: readonly Change[];
  stop(): void;
}

const decoder = new TextDecoder();

export async function recordHistory(endpoint: string, { plural }: Resource, namespace: string): Promise<History> {
  const etcd = new UserClient(() => performance.now());
  const over = new AbortController();
  const changes: Change[] = [];
  const registry = `/registry/${plural}/`;
  const watch = etcd.watch(
    { endpoint, timeoutMs: 10_000, signal: over.signal },
    { key: `${registry}${namespace}/`, prefix: true },
  );
  await watch.next(); // the watch is created
  const read = async (): Promise<void> => {
    for await (const item of watch) {
      if (item.is !== 'events') continue;
      for (const { type, kv } of item.events) {
        const key = decoder.decode(kv.key).slice(registry.length);
        changes.push({ key, version: String(kv.modRevision), is: type });
      }
    }
  };
  void read().catch(() => etcd.close());
  return { changes, stop: () => over.abort() };
}

/** The version of every object that exists after these changes. */
export function stateAfter(changes: readonly Change[]): ReadonlyMap<string, string> {
  const state = new Map<string, string>();
  for (const { key, version, is } of changes)
    if (is === 'put') state.set(key, version);
    else state.delete(key);
  return state;
}

/** How the observed changes differ from the true history, as sentences: invented, back in time, or back after a deletion. */
export function untrue(shown: readonly Change[], happened: readonly Change[]): readonly string[] {
  const real = new Set(happened.map(({ key, version, is }) => `${is} ${key} ${version}`));
  const last = new Map<string, Change>();
  return shown.flatMap((change) => {
    const { key, version, is } = change;
    const before = last.get(key);
    last.set(key, change);
    if (is === 'put' && !real.has(`put ${key} ${version}`)) return [`${key} never was at ${version}`];
    if (!before || (isAtLeast(version, before.version) && version !== before.version)) return [];
    return [`${key}: ${is} at ${version} was observed after ${before.is} at ${before.version}`];
  });
}
