/** Observers of a CA rotation: a client that writes all the time, and a watcher that counts Pods. */
import { isPodReady } from '../../../src/domain/pod.ts';
import type { Access } from '../../../src/etcd/client.ts';
import type { TlsMaterial } from '../../../src/etcd/transport.ts';
import type { Pod } from '../../../src/gen/kube.ts';
import { pods } from '../../../src/kube/resources.ts';
import { pause } from '../servers/processes.ts';
import type { World } from '../servers/world.ts';

/** This many writes use one connection: each new one is a handshake. */
const WRITES_PER_HANDSHAKE = 5;
const PAUSE_MS = 20;
const POLL_MS = 100;

export interface Witness {
  /** Writes that were acknowledged. */
  readonly acknowledged: number;
  /** The most retries of one write. */
  readonly maxRetries: number;
  readonly retries: readonly string[];
  /** The most members that were not ready at the same moment. */
  readonly maxDown: number;
  /** How often the Pod of each member was replaced. */
  readonly restarts: Readonly<Record<string, number>>;
}

const isServing = (pod: Pod): boolean => isPodReady(pod) && pod.metadata.deletionTimestamp === undefined;

/** Polls the Pods. The cluster is healthy when this starts. */
function watcher(world: World, namespace: string, over: () => boolean) {
  const uids = new Map<string, Set<string>>();
  const seen = { serving: [] as readonly Pod[], maxDown: 0 };
  let size = 0;
  const look = async (): Promise<void> => {
    const all = await world.list(pods, namespace);
    for (const { metadata } of all) {
      const known = uids.get(metadata.name ?? '') ?? new Set();
      uids.set(metadata.name ?? '', known.add(metadata.uid ?? ''));
    }
    seen.serving = all.filter(isServing);
    size = Math.max(size, seen.serving.length);
    seen.maxDown = Math.max(seen.maxDown, size - seen.serving.length);
  };
  const watch = async (): Promise<void> => {
    while (!over()) {
      await look();
      await pause(POLL_MS);
    }
  };
  const restarts = () => Object.fromEntries([...uids].map(([name, known]) => [name, known.size - 1]));
  return { seen, look, watch, restarts };
}

/** Writes to members that are ready, like clients of the Service, with the certificates that `material` has at that moment. */
export function witness(world: World, namespace: string, material: () => TlsMaterial | Promise<TlsMaterial>) {
  let over = false;
  const watching = watcher(world, namespace, () => over);
  const seen = { acknowledged: 0, maxRetries: 0 };
  const retries: string[] = [];
  let connections = 0;
  const connect = async (avoid: string | undefined) => {
    const others = watching.seen.serving.filter(({ metadata }) => metadata.name !== avoid);
    const pod = others[connections++ % others.length]?.metadata.name ?? '';
    const tls = { ...(await material()), serverName: `${pod}.db.${namespace}.svc` };
    const access: Access = { cluster: `connection ${connections}`, tls: () => tls };
    const endpoint = `https://${world.kubelet.addressOf(namespace, pod)}:2379`;
    return { pod, ask: { endpoint, timeoutMs: 5_000, access } };
  };
  const write = async (): Promise<void> => {
    let way = await connect(undefined);
    for (let number = 0, tries = 0; !over; ) {
      const answer = await world.etcd.put(way.ask, `seq/${number}`, String(number));
      if (answer.ok) {
        number++;
        tries = 0;
        seen.acknowledged = number;
      } else {
        retries.push(`${way.pod}: ${answer.error.kind} ${answer.error.message}`);
        seen.maxRetries = Math.max(seen.maxRetries, ++tries);
      }
      if (!answer.ok || number % WRITES_PER_HANDSHAKE === 0) {
        world.etcd.forget(way.ask.access.cluster);
        way = await connect(answer.ok ? undefined : way.pod);
      }
      await pause(PAUSE_MS);
    }
  };
  const running = watching.look().then(() => Promise.all([watching.watch(), write()]));
  return {
    end: async (): Promise<Witness> => {
      over = true;
      await running;
      await watching.look(); // the last Pod may be younger than the last poll
      return { ...seen, maxDown: watching.seen.maxDown, retries, restarts: watching.restarts() };
    },
  };
}
