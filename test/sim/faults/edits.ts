/** Edits of the template of members: some that they can run with, and some that they cannot. */
import type { EtcdCluster, EtcdClusterSpec } from '../../../src/api/etcd-cluster.ts';
import { etcdClusters, RESTARTED_AT_ANNOTATION } from '../../../src/api/names.ts';
import { minorOf } from '../../../src/domain/version-path.ts';
import type { Resource } from '../../../src/kube/object.ts';
import { versionNumber } from '../../../src/lib/version.ts';
import type { Action } from '../script.ts';
import { IMAGES } from '../world/command-line.ts';
import { isDeleting } from '../world/facts.ts';
import { refTo } from '../world/ground.ts';
import type { Deeds, Stage } from './stage.ts';

const clusters: Resource<EtcdCluster> = etcdClusters;
type Roll = Extract<Action, { readonly do: 'roll' }>;
type Patch = { readonly [Field in keyof EtcdClusterSpec]?: EtcdClusterSpec[Field] | null };

const MISSING_PATCH = 99;
const isMissing = (version: string): boolean => version.endsWith(`.${MISSING_PATCH}`);

/** What the admission rule on versions takes for the version that runs. */
const running = ({ spec, status }: EtcdCluster): string => status?.version ?? spec.version;

const releasesOf = (minor: number): readonly string[] =>
  IMAGES.filter((version) => minorOf(version) === minor && versionNumber(version) >= versionNumber('3.5.33'));

/** A release of that minor, if admission accepts it. */
function release(cluster: EtcdCluster, minor: number): string | undefined {
  const from = minorOf(running(cluster));
  return Math.abs(minor - from) > 1 ? undefined : releasesOf(minor).at(-1);
}

/** As a user would correct a version that does not exist. */
function corrected(cluster: EtcdCluster): Patch {
  const { version } = cluster.spec;
  const found = isMissing(version) ? (release(cluster, minorOf(version)) ?? running(cluster)) : version;
  return { version: found };
}

interface Edit {
  readonly patch: Patch;
  readonly back?: (cluster: EtcdCluster) => Patch;
}

function editFor({ what, ms }: Roll, cluster: EtcdCluster): Edit | undefined {
  const minor = minorOf(cluster.spec.version);
  const to = (version: string | undefined): Edit | undefined =>
    version === undefined || version === cluster.spec.version ? undefined : { patch: { version } };
  switch (what) {
    case 'options':
      return { patch: { options: { snapshotCount: 1_000 + ms } } };
    case 'resources':
      return { patch: { resources: { requests: { cpu: `${1 + (ms % 900)}m` } } } };
    case 'patch':
      return to(releasesOf(minor)[ms % Math.max(1, releasesOf(minor).length)]);
    case 'minorUp':
      return to(release(cluster, minor + 1));
    case 'minorDown':
      return to(release(cluster, minor - 1));
    case 'noImage':
    case 'noImageOfNextMinor': {
      const wanted = what === 'noImage' ? minor : minor + 1;
      const exists = release(cluster, wanted) !== undefined;
      const [major, part] = [Math.floor(wanted / 1_000), wanted % 1_000];
      return exists ? { patch: { version: `${major}.${part}.${MISSING_PATCH}` }, back: corrected } : undefined;
    }
    case 'noFlag':
      return { patch: { extraArgs: ['--nonsense=1'] }, back: () => ({ extraArgs: null }) };
    case 'noNode':
      return { patch: { nodeSelector: { disk: 'none' } }, back: () => ({ nodeSelector: null }) };
    case 'onDelete':
      return { patch: { updateStrategy: { type: 'OnDelete' } }, back: () => ({ updateStrategy: null }) };
    case 'restart':
      return { patch: {} };
  }
}

function patch({ world }: Stage, spec: Patch, restartedAt?: string): void {
  const { cluster, ground } = world;
  if (!cluster || isDeleting(cluster)) return;
  const metadata =
    restartedAt === undefined ? {} : { metadata: { annotations: { [RESTARTED_AT_ANNOTATION]: restartedAt } } };
  ground.patch(clusters, refTo(cluster), { spec, ...metadata });
}

export const editDeeds: Deeds<'roll'> = {
  roll: (stage, action) => {
    const { world, undo } = stage;
    const { cluster, ground } = world;
    const edit = cluster && !isDeleting(cluster) ? editFor(action, cluster) : undefined;
    if (!edit) return false;
    if ('options' in edit.patch) stage.scene.edited = true;
    patch(stage, edit.patch, action.what === 'restart' ? String(ground.timeline.now) : undefined);
    ground.count(`roll: ${action.what}`);
    const { back } = edit;
    if (!back) return true;
    const takeBack = (): void => {
      if (undo.delete(takeBack) && world.cluster) patch(stage, back(world.cluster));
    };
    undo.add(takeBack);
    ground.timeline.after(action.ms, takeBack);
    return true;
  },
};
