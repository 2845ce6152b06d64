/** Volumes: provisioned for a PVC when its first Pod has a node, protected while in use, and deleted with their PVC. */
import type { PersistentVolumeClaim, Pod } from '../../../src/gen/kube.ts';
import type { KubeObject, Resource } from '../../../src/kube/object.ts';
import { persistentVolumeClaims, pods } from '../../../src/kube/resources.ts';
import type { ModelNode } from '../model/etcd.ts';
import type { Group } from '../model/etcd-group.ts';
import { type Ground, NAMESPACE, refTo } from './ground.ts';

export const persistentVolumes: Resource = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumes',
  kind: 'PersistentVolume',
};
const PROTECTION = 'kubernetes.io/pvc-protection';

export type Disk = NonNullable<ModelNode['disk']>;

/** A data directory and its location. */
export interface Volume {
  /** The uid of the PVC, or of the Pod whose memory it is. */
  readonly uid: string;
  readonly claim: string | undefined;
  /** The node that it can be used on; any node if undefined. */
  node: string | undefined;
  disk: Disk | undefined;
  /** What keeps etcd from starting on it. */
  trouble: 'none' | 'full' | 'damaged';
  /** A member on it has voted. */
  voted: boolean;
  /** Nothing brings it back. */
  destroyed: boolean;
}

export class Volumes {
  readonly all: Volume[] = [];
  /** PVCs that were deleted with the data directory of a member that had voted. */
  readonly deleted: { readonly uid: string; readonly group: Group; readonly at: number }[] = [];
  readonly #ground: Ground;
  readonly #local: boolean;

  /** Local volumes can be used on one node only. */
  constructor(ground: Ground, local: boolean) {
    this.#ground = ground;
    this.#local = local;
  }

  of(uid: string | undefined): Volume | undefined {
    return this.all.find((volume) => volume.uid === uid && !volume.destroyed);
  }

  claimOf(pod: Pod): PersistentVolumeClaim | undefined {
    const name = pod.spec?.volumes?.find((v) => v.persistentVolumeClaim)?.persistentVolumeClaim?.claimName;
    return name === undefined ? undefined : this.#ground.find(persistentVolumeClaims, name);
  }

  /** Memory that lasts as long as the Pod. */
  memory(podUid: string): Volume {
    return this.of(podUid) ?? this.#keep({ uid: podUid, claim: undefined, node: undefined });
  }

  bind(claim: PersistentVolumeClaim, node: string): Volume {
    const { uid = '', name = '' } = claim.metadata;
    const known = this.of(uid);
    if (known) return known;
    const volume = this.#keep({ uid, claim: name, node: this.#local ? node : undefined });
    const volumeName = `pvc-${uid}`;
    this.#ground.write((api) => api.create(persistentVolumes, aVolume(volumeName, volume.node)));
    const ref = { namespace: NAMESPACE, name };
    const annotations = { 'volume.kubernetes.io/selected-node': node };
    this.#ground.patch(persistentVolumeClaims, ref, { metadata: { annotations }, spec: { volumeName } });
    this.#ground.patchStatus(persistentVolumeClaims, ref, { phase: 'Bound' });
    return volume;
  }

  /** The storage loses the volume. Its PVC continues to exist, with the phase Lost. */
  lose(volume: Volume): void {
    this.destroy(volume);
    const claim = volume.claim;
    if (claim === undefined) return;
    const object = this.#ground.find(persistentVolumes, `pvc-${volume.uid}`, '');
    if (object)
      this.#ground.write((api) => api.delete(persistentVolumes, refTo(object), { uid: object.metadata.uid ?? '' }));
    this.#ground.patchStatus(persistentVolumeClaims, { namespace: NAMESPACE, name: claim }, { phase: 'Lost' });
  }

  destroy(volume: Volume): void {
    volume.destroyed = true;
    volume.disk = undefined;
  }

  /** PVCs are protected while a Pod uses them, and volumes are deleted with their PVCs. */
  sync(): void {
    const claims = this.#ground.api.peek(persistentVolumeClaims);
    for (const claim of claims) {
      const { finalizers = [], deletionTimestamp, name } = claim.metadata;
      const isProtected = finalizers.includes(PROTECTION);
      if (deletionTimestamp === undefined) {
        if (!isProtected) this.#finalize(claim, [...finalizers, PROTECTION]);
        continue;
      }
      // A Pod without a node does not use it yet, and never will.
      const used = this.#ground.api
        .peek(pods)
        .some((pod) => pod.spec?.nodeName !== undefined && this.claimOf(pod)?.metadata.name === name);
      if (isProtected && !used)
        this.#finalize(
          claim,
          finalizers.filter((f) => f !== PROTECTION),
        );
    }
    const present = new Set(this.#ground.api.peek(persistentVolumeClaims).map(({ metadata }) => metadata.uid));
    for (const volume of this.all)
      if (volume.claim !== undefined && !volume.destroyed && !present.has(volume.uid)) {
        if (volume.disk && volume.voted)
          this.deleted.push({ uid: volume.uid, group: volume.disk.group, at: this.#ground.timeline.now });
        this.destroy(volume);
      }
  }

  #finalize(claim: PersistentVolumeClaim, finalizers: readonly string[]): void {
    this.#ground.patch(persistentVolumeClaims, refTo(claim), { metadata: { finalizers } });
  }

  #keep(where: Pick<Volume, 'uid' | 'claim' | 'node'>): Volume {
    const volume: Volume = { ...where, disk: undefined, trouble: 'none', voted: false, destroyed: false };
    this.all.push(volume);
    return volume;
  }
}

function aVolume(name: string, node: string | undefined): KubeObject {
  const terms = [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }] }];
  const spec = node === undefined ? {} : { nodeAffinity: { required: { nodeSelectorTerms: terms } } };
  return { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec } as KubeObject;
}
