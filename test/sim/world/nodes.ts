/** Nodes crash, are cut off, come back, are deleted or tainted out-of-service; and what Kubernetes does with their Pods. */
import type { Node, Pod } from '../../../src/gen/kube.ts';
import type { KubeObject, Resource } from '../../../src/kube/object.ts';
import { pods } from '../../../src/kube/resources.ts';
import { type Ground, refTo } from './ground.ts';

export const nodes: Resource = { group: '', version: 'v1', plural: 'nodes', kind: 'Node' };

export interface NodeState {
  readonly name: string;
  /** off: its processes are dead. cutOff: they run, and are unreachable. gone: it never comes back. */
  state: 'up' | 'off' | 'cutOff' | 'gone';
  outOfService: boolean;
  cordoned: boolean;
}

/** The node controller waits this long before a node is NotReady, and Pods are evicted this long after that. */
export const GRACE_MS = 40_000;
const EVICTION_MS = 300_000;

export class Nodes {
  readonly all: NodeState[] = [];
  readonly #ground: Ground;
  #named = 0;

  constructor(ground: Ground, count: number) {
    this.#ground = ground;
    for (let i = 0; i < count; i++) this.add();
  }

  add(): NodeState {
    const name = `node-${++this.#named}`;
    const node: NodeState = { name, state: 'up', outOfService: false, cordoned: false };
    this.all.push(node);
    this.#ground.write((api) => api.create(nodes, aNode(name)));
    this.#report(node, 'True', 'KubeletReady');
    return node;
  }

  get(name: string | undefined): NodeState | undefined {
    return this.all.find((node) => node.name === name);
  }
  isUp(name: string | undefined): boolean {
    return this.get(name)?.state === 'up';
  }

  /** By the clock of the node controller. */
  notReadySince(name: string | undefined): number | undefined {
    const node = name === undefined ? undefined : this.#ground.find(nodes, name, '');
    const conditions = (node as Node | undefined)?.status?.conditions;
    const ready = conditions?.find(({ type }) => type === 'Ready');
    return ready && ready.status !== 'True' ? Date.parse(ready.lastTransitionTime ?? '') : undefined;
  }

  /** The caller stops or isolates the processes. */
  fail(node: NodeState, how: 'off' | 'cutOff'): void {
    node.state = how;
    this.#ground.timeline.after(GRACE_MS, () => {
      if (node.state === 'up' || node.state === 'gone') return;
      this.#report(node, 'Unknown', 'NodeStatusUnknown');
      for (const pod of this.#podsOn(node)) this.#ground.patchStatus(pods, refTo(pod), { conditions: unready(pod) });
      this.#ground.timeline.after(EVICTION_MS, () => {
        if (node.state !== 'up' && node.state !== 'gone') this.#evict(node);
      });
    });
  }

  /** The caller starts the processes again. */
  recover(node: NodeState): void {
    if (node.state === 'gone') return;
    node.state = 'up';
    if (node.outOfService) this.#ground.patch(nodes, { namespace: '', name: node.name }, { spec: { taints: null } });
    node.outOfService = false;
    this.#report(node, 'True', 'KubeletReady');
  }

  /** Pods that run there go on, and no other is scheduled there. */
  cordon(node: NodeState, unschedulable: boolean): void {
    if (node.state === 'gone') return;
    node.cordoned = unschedulable;
    this.#ground.patch(nodes, { namespace: '', name: node.name }, { spec: { unschedulable } });
  }

  /** A user or the cloud provider reports that this node will not come back by itself: its Pods are deleted immediately. */
  declareOutOfService(node: NodeState): void {
    node.outOfService = true;
    const taints = [{ key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' }];
    this.#ground.patch(nodes, { namespace: '', name: node.name }, { spec: { taints } });
    this.#evict(node);
    this.#ground.soon(100, 20_000, () => this.forgetPods(node));
  }

  remove(node: NodeState): void {
    node.state = 'gone';
    const object = this.#ground.find(nodes, node.name, '');
    if (object) this.#ground.write((api) => api.delete(nodes, refTo(object), { uid: object.metadata.uid ?? '' }));
    this.#ground.soon(5_000, 40_000, () => {
      this.#evict(node);
      this.forgetPods(node);
    });
  }

  /** The Pod garbage collector: no kubelet will ever confirm that these have ended. */
  forgetPods(node: NodeState): void {
    for (const pod of this.#podsOn(node))
      if (pod.metadata.deletionTimestamp) this.#ground.finishPod(pod.metadata.name ?? '');
  }

  #evict(node: NodeState): void {
    for (const pod of this.#podsOn(node))
      this.#ground.write((api) => api.delete(pods, refTo(pod), { uid: pod.metadata.uid ?? '' }));
  }

  #podsOn(node: NodeState): readonly Pod[] {
    return this.#ground.api.peek(pods).filter((pod) => pod.spec?.nodeName === node.name);
  }

  #report(node: NodeState, status: 'True' | 'Unknown', reason: string): void {
    const lastTransitionTime = this.#ground.timeline.time;
    const conditions = [{ type: 'Ready', status, reason, lastTransitionTime }];
    this.#ground.patchStatus(nodes, { namespace: '', name: node.name }, { conditions });
  }
}

const aNode = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { 'kubernetes.io/hostname': name } },
});

const unready = (pod: Pod) =>
  (pod.status?.conditions ?? []).map((c) => (c.type === 'Ready' ? { ...c, status: 'False' } : c));
