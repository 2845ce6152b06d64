/** What every part of a world uses: the clock, the random source, the API server, and the log of what happened. */
import type { KubeObject, Ref, Resource } from '../../../src/kube/object.ts';
import { pods } from '../../../src/kube/resources.ts';
import { ModelApiServer, refused } from '../model/kube.ts';
import { Random } from './random.ts';
import { EPOCH, Timeline } from './timeline.ts';

export const NAMESPACE = 'ns';

export class Ground {
  readonly timeline: Timeline;
  readonly random: Random;
  readonly api: ModelApiServer;
  /** How often each kind of fault really happened. */
  readonly tally = new Map<string, number>();
  /** When something other than an operator last changed something. */
  changedAt = 0;
  /** When a policy refuses new Pods. */
  podsRefused = { since: 0, until: 0 };
  /** By kind, fields of the status that the CRD lacks: the API server drops them without an error. */
  readonly unknownFields = new Map<string, readonly string[]>();
  /** The story of this world for a reader; recorded only on request. */
  readonly story: string[] | undefined;

  constructor(seed: number, tellStory: boolean, startsAt = EPOCH) {
    this.timeline = new Timeline(startsAt);
    this.random = new Random(seed);
    this.story = tellStory ? [] : undefined;
    this.api = new ModelApiServer({ now: () => this.timeline.date, admit: (...what) => this.#admit(...what) });
  }

  /** A policy refuses new Pods, and leaves those alone that exist. */
  #admit(resource: Resource, whole: KubeObject): KubeObject {
    const object = withoutFields(whole, this.unknownFields.get(resource.kind) ?? []);
    if (resource.kind !== 'Pod' || object.metadata.resourceVersion !== undefined || !this.refusesPods()) return object;
    this.count('api: refused Pod');
    throw refused('admission webhook "policy.example.com" denied the request: Pods are not allowed now');
  }

  /** For at least so long. */
  refusesPods(sinceMs = 0): boolean {
    const { since, until } = this.podsRefused;
    return until > this.timeline.now && this.timeline.now - since >= sinceMs;
  }

  count(kind: string): void {
    this.tally.set(kind, (this.tally.get(kind) ?? 0) + 1);
  }

  tell(what: () => string): void {
    this.story?.push(`${(this.timeline.now / 1000).toFixed(3).padStart(9)} s  ${what()}`);
  }

  /** Later, at a random moment. */
  soon(lowMs: number, highMs: number, what: () => void): void {
    this.timeline.after(this.random.between(lowMs, highMs), what);
  }

  find<T extends KubeObject>(resource: Resource<T>, name: string, namespace = NAMESPACE): T | undefined {
    return this.api
      .peek(resource)
      .find(({ metadata }) => metadata.name === name && (metadata.namespace ?? '') === namespace);
  }

  /** A write that is not the operator's: done immediately; a refused write is dropped. */
  write(what: (api: ModelApiServer) => Promise<unknown>): void {
    this.changedAt = this.timeline.now;
    what(this.api).catch(() => undefined);
  }

  /** What a kubelet, or a controller in its place, does when the process of a Pod has ended. */
  finishPod(name: string): void {
    this.changedAt = this.timeline.now;
    this.api.finishPod(pods, { namespace: NAMESPACE, name });
  }

  patch(resource: Resource, ref: Ref, body: Readonly<Record<string, unknown>>): void {
    this.write((api) => api.patch(resource, ref, body));
  }
  patchStatus(resource: Resource, ref: Ref, status: Readonly<Record<string, unknown>>): void {
    this.write((api) => api.patch(resource, ref, { status }, { subresource: 'status' }));
  }
}

export const refTo = ({ metadata }: KubeObject): Ref => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

function withoutFields(object: KubeObject, fields: readonly string[]): KubeObject {
  const { status } = object as { readonly status?: Readonly<Record<string, unknown>> };
  if (!status || fields.length === 0) return object;
  const kept = Object.entries(status).filter(([field]) => !fields.includes(field));
  return { ...object, status: Object.fromEntries(kept) } as KubeObject;
}
