/** A client of the cluster: it writes through the client Service and records what was acknowledged. */
import { clientServiceName } from '../../../src/api/names.ts';
import type { Pod } from '../../../src/gen/kube.ts';
import { pods, services } from '../../../src/kube/resources.ts';
import type { UserEtcd } from '../../support/etcd-client.ts';
import type { Group } from '../model/etcd-group.ts';
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

export class Writer {
  readonly acknowledged: Acknowledged[] = [];
  readonly #ground: Ground;
  readonly #cluster: string;
  readonly #ports: UserEtcd;
  readonly #kubelet: Kubelet;
  #written = 0;
  #resting = false;

  constructor(ground: Ground, cluster: string, ports: UserEtcd, kubelet: Kubelet) {
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
    const ask = { endpoint: `http://${run.ip}:2379`, timeoutMs: 1_000 };
    void this.#ports.kv.put(ask, key, '').then(({ ok }) => {
      if (ok) this.acknowledged.push({ key, group, index: group.index, cuts: group.cuts.length });
    });
  }
}
