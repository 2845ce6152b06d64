/** Finds a node for a Pod: where its volume is, apart from its siblings where there is room, or none. */
import { CLUSTER_LABEL } from '../../../src/api/names.ts';
import type { Pod } from '../../../src/gen/kube.ts';
import { pods } from '../../../src/kube/resources.ts';
import { type Ground, refTo } from './ground.ts';
import type { NodeState, Nodes } from './nodes.ts';
import type { Volumes } from './volumes.ts';

export class Scheduler {
  readonly #ground: Ground;
  readonly #nodes: Nodes;
  readonly #volumes: Volumes;
  readonly #waiting = new Set<string>();

  constructor(ground: Ground, nodes: Nodes, volumes: Volumes) {
    this.#ground = ground;
    this.#nodes = nodes;
    this.#volumes = volumes;
  }

  sync(): void {
    for (const pod of this.#ground.api.peek(pods)) {
      const { uid = '', deletionTimestamp } = pod.metadata;
      const over = pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
      if (!pod.spec || pod.spec.nodeName !== undefined || deletionTimestamp || over || this.#waiting.has(uid)) continue;
      this.#waiting.add(uid);
      this.#ground.soon(5, 100, () => this.#place(uid));
    }
  }

  #place(uid: string): void {
    const pod = this.#ground.api.peek(pods).find(({ metadata }) => metadata.uid === uid);
    if (!pod || pod.metadata.deletionTimestamp || pod.spec?.nodeName !== undefined)
      return void this.#waiting.delete(uid);
    const node = this.#choose(pod);
    if (!node) {
      this.#refuse(pod);
      this.#ground.soon(2_000, 8_000, () => this.#place(uid));
      return;
    }
    const claim = this.#volumes.claimOf(pod);
    if (claim) this.#volumes.bind(claim, node.name);
    this.#ground.patch(pods, refTo(pod), { spec: { nodeName: node.name } });
    this.#waiting.delete(uid);
  }

  #choose(pod: Pod): NodeState | undefined {
    const named = pod.spec?.volumes?.some((v) => v.persistentVolumeClaim);
    const claim = this.#volumes.claimOf(pod);
    if (named && (!claim || claim.metadata.deletionTimestamp || claim.status?.phase === 'Lost')) return undefined;
    if (Object.keys(pod.spec?.nodeSelector ?? {}).length > 0) return undefined; // no node has a label
    const bound = this.#volumes.of(claim?.metadata.uid);
    const able = this.#nodes.all.filter(
      ({ name, state, cordoned }) => state === 'up' && !cordoned && (!bound?.node || bound.node === name),
    );
    const siblings = this.#ground.api
      .peek(pods)
      .filter((p) => p.metadata.labels?.[CLUSTER_LABEL] === pod.metadata.labels?.[CLUSTER_LABEL])
      .map((p) => p.spec?.nodeName);
    const apart = able.filter(({ name }) => !siblings.includes(name));
    return this.#ground.random.pick(apart.length > 0 ? apart : able);
  }

  #refuse(pod: Pod): void {
    const reported = pod.status?.conditions?.some((c) => c.type === 'PodScheduled' && c.status === 'False');
    if (reported) return;
    const message = '0 nodes are available: node(s) had volume node affinity conflict';
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }];
    this.#ground.patchStatus(pods, refTo(pod), { phase: 'Pending', conditions });
  }
}
