/** Whether hanging clusters slow others down: how soon the operator creates a deleted Pod of a healthy cluster again. */
import { CLUSTER_LABEL, etcdClusters } from '../../src/api/names.ts';
import type { Pod } from '../../src/gen/kube.ts';
import type { Resource } from '../../src/kube/object.ts';
import { pods } from '../../src/kube/resources.ts';
import { pause } from '../../test/support/servers/processes.ts';
import { type Figure, summarise } from '../../tools/figures.ts';
import { keyOfCluster, NAMESPACE, nameOf, type ScaleRig } from './scale-rig.ts';

const LOSSES = 100;
const podKind: Resource<Pod> = pods;

export async function isolation(rig: ScaleRig, progress: (detail: string) => void): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const hung of [0, Math.round(rig.clusters / 20)]) {
    progress(`lost Pods while ${hung} of ${rig.clusters} clusters hang`);
    const times = await loseBeside(rig, hung, Math.min(LOSSES, rig.clusters - hung));
    const what = `lost Pod created again, 99 %, ${hung} of ${rig.clusters} hung`;
    figures.push(summarise(what, [percentile(times, 0.99)], 's', { atMost: 0.25, go: GO[hung] ?? '' }));
  }
  return figures;
}

const GO: Readonly<Record<number, string>> = { 0: '0.02-0.05 s', 10: '60-109 s' };

const percentile = (samples: readonly number[], part: number): number =>
  samples.toSorted((a, b) => a - b)[Math.ceil(samples.length * part) - 1] ?? 0;

/** The first clusters hang, and a user keeps editing them: a cluster that is never reconciled would not slow others down. */
export async function loseBeside(rig: ScaleRig, hung: number, losses: number): Promise<readonly number[]> {
  const numbers = Array.from({ length: hung }, (_, n) => n);
  rig.etcd.hang(numbers.map(keyOfCluster));
  let edits = 0;
  const editing = setInterval(() => {
    edits++;
    for (const n of numbers) void edit(rig, n, String(edits)).catch(() => undefined);
  }, 1_000);
  try {
    await pause(3_000);
    const times: number[] = [];
    for (let n = 0; n < losses; n++) times.push(await loss(rig, hung + n));
    return times;
  } finally {
    clearInterval(editing);
    rig.etcd.hang([]);
  }
}

const edit = (rig: ScaleRig, n: number, value: string): Promise<unknown> =>
  rig.admin.patch(
    etcdClusters,
    { namespace: NAMESPACE, name: nameOf(n) },
    { metadata: { annotations: { edited: value } } },
  );

/** From the deletion of the Pod to the creation of the next one, in seconds, as a kubelet sees it. */
async function loss(rig: ScaleRig, n: number): Promise<number> {
  const { name, uid } = await oneMember(rig, n);
  let deletedAt = 0;
  const again = new Promise<number>((resolve) => {
    const off = rig.kubelet.on((key, is) => {
      if (key !== `${NAMESPACE}/${name}`) return;
      if (is === 'deleted') deletedAt = performance.now();
      else {
        off();
        resolve(performance.now());
      }
    });
  });
  await rig.admin.delete(podKind, { namespace: NAMESPACE, name }, { uid });
  return Math.max(0, (await again) - deletedAt) / 1000;
}

/** The Pod of one member of a cluster. */
export async function oneMember(rig: ScaleRig, n: number): Promise<{ readonly name: string; readonly uid: string }> {
  for await (const page of rig.admin.pages(podKind, {
    namespace: NAMESPACE,
    selector: `${CLUSTER_LABEL}=${nameOf(n)}`,
  }))
    for (const { metadata } of page.items) return { name: metadata.name ?? '', uid: metadata.uid ?? '' };
  throw new Error(`cluster ${nameOf(n)} has no Pod`);
}
