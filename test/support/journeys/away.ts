/** How many members are away at once while a cluster is changed, and how often each Pod was replaced. */
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { AnObject, Tenant } from './journey.ts';

const POLL_MS = 200;

interface Seen {
  /** The fewest Pods that were ready at the same time. */
  readonly fewestReady: number;
  /** Every Pod that was seen, in the order of its first sight: the name of its member. */
  readonly created: readonly string[];
}

const isReady = ({ metadata, status }: AnObject): boolean =>
  metadata.deletionTimestamp === undefined &&
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;

/** Watches the Pods of a cluster until it is stopped. */
export function watchPods(tenant: Tenant, name: string) {
  const uids = new Map<string, string>();
  let fewestReady = Number.POSITIVE_INFINITY;
  let stopped = false;
  const run = async (): Promise<void> => {
    while (!stopped) {
      const pods = await tenant.list('pods', `etcd-operator.cozystack.io/cluster=${name}`);
      for (const { metadata } of pods) uids.set(metadata.uid, metadata.name);
      fewestReady = Math.min(fewestReady, pods.filter(isReady).length);
      await sleep(POLL_MS);
    }
  };
  const ended = run();
  const stop = async (): Promise<Seen> => {
    stopped = true;
    await ended;
    return { fewestReady, created: [...uids.values()] };
  };
  onTestFinished(async () => void (await stop()));
  return { stop };
}

/** The command of its etcd. */
export function flagsOf({ spec }: AnObject): readonly string[] {
  const containers = spec['containers'] as readonly { readonly name: string; readonly command?: readonly string[] }[];
  return containers.find((container) => container.name === 'etcd')?.command ?? [];
}
