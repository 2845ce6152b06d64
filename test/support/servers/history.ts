/** What really happened to the objects of a kind and namespace, revision by revision, as the API server's own etcd has it: nothing on our way disturbs that. */

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
  await watch.next(); // it has begun
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

/** The version of every object that is there after these changes. */
export function stateAfter(changes: readonly Change[]): ReadonlyMap<string, string> {
  const state = new Map<string, string>();
  for (const { key, version, is } of changes)
    if (is === 'put') state.set(key, version);
    else state.delete(key);
  return state;
}

/** Ways in which what was shown is not what happened, as sentences: invented, gone back in time, or risen from the dead. */
export function untrue(shown: readonly Change[], happened: readonly Change[]): readonly string[] {
  const real = new Set(happened.map(({ key, version, is }) => `${is} ${key} ${version}`));
  const last = new Map<string, Change>();
  return shown.flatMap((change) => {
    const { key, version, is } = change;
    const before = last.get(key);
    last.set(key, change);
    if (is === 'put' && !real.has(`put ${key} ${version}`)) return [`${key} never was at ${version}`];
    if (!before || (isAtLeast(version, before.version) && version !== before.version)) return [];
    return [`${key}: ${is} at ${version} was shown after ${before.is} at ${before.version}`];
  });
}
