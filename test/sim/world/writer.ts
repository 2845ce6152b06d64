/** A client of the cluster: it writes through the client Service and records what was acknowledged. */
import { clientServiceName } from '../../../src/api/names.ts';
import type { TlsMaterial } from '../../../src/etcd/transport.ts';
import type { Pod } from '../../../src/gen/kube.ts';
import { pods, services } from '../../../src/kube/resources.ts';
import type { UserEtcd } from '../../support/etcd-client.ts';
import type { Group } from '../model/etcd-group.ts';
import { accepts } from '../model/etcd-tls.ts';
import type { Credentials } from './credentials.ts';
import type { Ground } from './ground.ts';
import type { Kubelet } from './kubelet.ts';

export interface Acknowledged {
  readonly key: string;
  readonly group: Group;
  /** The index in the log. */
  readonly index: number;
  /** How often the log had been cut by then. */
  readonly cuts: number;
}

/** Its Pod. */
const WRITER = 'writer';

export class Writer {
  readonly acknowledged: Acknowledged[] = [];
  readonly #ground: Ground;
  readonly #cluster: string;
  readonly #ports: UserEtcd;
  readonly #kubelet: Kubelet;
  readonly #credentials: Credentials | undefined;
  #written = 0;
  #resting = false;

  constructor(
    ground: Ground,
    cluster: string,
    ports: UserEtcd,
    kubelet: Kubelet,
    credentials: Credentials | undefined,
  ) {
    this.#credentials = credentials;
    this.#ground = ground;
    this.#cluster = cluster;
    this.#ports = ports;
    this.#kubelet = kubelet;
    this.#later();
  }

  /** The backends of the Service: Pods that it selects and that are ready. */
  backends(): readonly Pod[] {
    const selector = this.#ground.find(services, clientServiceName(this.#cluster))?.spec?.selector;
    if (!selector) return [];
    return this.#ground.api.peek(pods).filter(({ metadata, status }) => {
      const selected = Object.entries(selector).every(([key, value]) => metadata.labels?.[key] === value);
      const ready = status?.conditions?.some(({ type, status: so }) => type === 'Ready' && so === 'True');
      return selected && ready && metadata.deletionTimestamp === undefined;
    });
  }

  /** Whether clients can reach this etcd cluster. */
  isServed(group: Group | undefined): boolean {
    const groups = this.backends().map((pod) => this.#kubelet.runs.get(pod.metadata.uid ?? '')?.process?.disk?.group);
    return group !== undefined && groups.includes(group);
  }

  /** What its Pod mounts, or its user gave it; `undefined` without TLS, and before its Secret exists. */
  material(): TlsMaterial | undefined {
    const { mounts } = this.#kubelet;
    const { options, applications, applicationMount = [] } = this.#credentials ?? {};
    if (!options || !mounts.mount(WRITER, applicationMount, () => true)) return undefined;
    const read = (path: string): string => mounts.read(WRITER, path) ?? '';
    const ca = read('ca.crt');
    if (!options.mutual) return { ca };
    if (options.client === 'managed') return { ca, cert: read('tls.crt'), key: read('tls.key') };
    const bundles = [...this.#kubelet.runs.values()].flatMap(
      ({ process }) => process?.options.tls?.client?.bundle ?? [],
    );
    const cert = applications?.find((leaf) => bundles.every((bundle) => accepts(bundle, leaf))) ?? applications?.[0];
    return cert === undefined ? undefined : { ca, cert };
  }

  /** Its cluster is created again, with certificates of its own. */
  startAgain(): void {
    this.#kubelet.mounts.unmount(WRITER);
  }

  /** Stops the writes, so that an idle world has no events. */
  rest(): void {
    this.#resting = true;
  }

  #later(): void {
    this.#ground.soon(300, 3_000, () => {
      if (this.#resting) return;
      this.#write();
      this.#later();
    });
  }

  #write(): void {
    const pod = this.#ground.random.pick(this.backends());
    const run = this.#kubelet.runs.get(pod?.metadata.uid ?? '');
    const group = run?.process?.disk?.group;
    if (!run || !group) return;
    const key = `key-${++this.#written}`;
    const tls = this.material();
    if (this.#credentials && !tls) return;
    const password = group.state.users.enabled ? group.state.users.passwordOf('root') : undefined;
    const ask = {
      endpoint: `${tls ? 'https' : 'http'}://${run.ip}:2379`,
      timeoutMs: 1_000,
      access: {
        cluster: 'writer',
        ...(tls && { tls: () => tls }),
        ...(password !== undefined && { passwords: () => [{ user: 'root', password }] }),
      },
    };
    void this.#ports.kv.put(ask, key, '').then(({ ok }) => {
      if (ok) this.acknowledged.push({ key, group, index: group.index, cuts: group.cuts.length });
    });
  }
}
