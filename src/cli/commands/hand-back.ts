/** `kubectl etcd hand-back`: puts back what the Go operator needs, after its release was rolled back. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { clusterSelector } from '../../api/names.ts';
import { listAll } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import type { Ref, Resource } from '../../kube/object.ts';
import { persistentVolumeClaims } from '../../kube/resources.ts';
import { type Assessment, assessHandBack, type Change } from '../assess/hand-back.ts';
import { type ActFlags, isAgreed } from '../confirm.ts';
import { type Context, UserError } from '../context.ts';
import { gatherFleet } from '../gather/fleet.ts';
import { members, readCluster, readMembers, schedules } from '../gather/objects.ts';

/** Longer than this operator needs to remove an owner reference again. */
const UNDONE_WITHIN_MS = 3_000;

interface Assessed extends Assessment {
  readonly ref: Ref;
}

async function assess({ client }: Context, cluster: EtcdCluster): Promise<Assessed> {
  const { namespace = '', name = '' } = cluster.metadata;
  const [found, volumes, known] = await Promise.all([
    readMembers(client, cluster),
    listAll(client, persistentVolumeClaims, { namespace, selector: clusterSelector(name) }),
    // The CRD may be deleted already.
    listAll(client, schedules, { namespace }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
      return [];
    }),
  ]);
  const ofCluster = known.filter(({ spec }) => spec.clusterRef.name === name).length;
  return { ...assessHandBack({ cluster, members: found, volumes, schedules: ofCluster }), ref: { namespace, name } };
}

const count = (changes: readonly Change[], kind: Change['kind'], what: string): readonly string[] => {
  const of = changes.filter((change) => change.kind === kind).length;
  return of === 0 ? [] : [`${what} of ${of} ${kind}${of === 1 ? '' : 's'}`];
};
const summary = ({ changes }: Assessed): string =>
  [
    ...count(changes, 'PersistentVolumeClaim', 'the owner references'),
    ...count(changes, 'EtcdMember', 'the names of the Secrets'),
  ].join(' and ') || 'nothing';

function report({ print }: Context, assessed: Assessed): void {
  const { ref, obstacles, notes } = assessed;
  print(`${ref.namespace}/${ref.name}: ${summary(assessed)} to put back\n`);
  for (const obstacle of obstacles) print(`  in the way: ${obstacle}\n`);
  for (const note of notes) print(`  ${note}\n`);
}

async function change({ client }: Context, { ref: { namespace }, changes }: Assessed): Promise<void> {
  const kinds: Readonly<Record<Change['kind'], Resource>> = {
    EtcdMember: members,
    PersistentVolumeClaim: persistentVolumeClaims,
  };
  for (const { kind, name, fields } of changes) await client.patch(kinds[kind], { namespace, name }, { ...fields });
}

/** Exit code 2: something is in the way of the Go operator that this command cannot change. */
export async function handBack(
  context: Context,
  name: string | undefined,
  flags: ActFlags & { readonly allNamespaces?: boolean },
): Promise<number> {
  const { client, namespace } = context;
  const found =
    name === undefined
      ? await gatherFleet(client, flags.allNamespaces ? undefined : namespace)
      : [await readCluster(client, { namespace, name })];
  const all: Assessed[] = [];
  for (const cluster of found) {
    const assessed = await assess(context, cluster);
    report(context, assessed);
    all.push(assessed);
  }
  const code = all.some(({ obstacles }) => obstacles.length > 0) ? 2 : 0;
  const changes = all.reduce((sum, each) => sum + each.changes.length, 0);
  if (changes === 0) return code;
  const plan = `change ${changes} objects of ${all.length} clusters for the Go operator`;
  if (!(await isAgreed(context, plan, flags))) return code;
  for (const each of all) await change(context, each);
  await sleep(UNDONE_WITHIN_MS, undefined, { signal: context.signal }).catch(() => undefined);
  const undone = (await Promise.all(found.map((cluster) => assess(context, cluster)))).filter(
    (each) => each.changes.length > 0,
  );
  if (undone.length > 0)
    throw new UserError(
      `${undone.map(({ ref }) => `${ref.namespace}/${ref.name}`).join(', ')} was changed again meanwhile: this operator still runs. Roll its release back first (helm rollback), then repeat the command`,
    );
  context.note('done: the Go operator has what it needs');
  return code;
}
