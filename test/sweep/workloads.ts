/** User operations on a cluster: from one state to another. */
import { textOf } from '../../src/access/evaluate/secret-set.ts';
import { keptPasswordName } from '../../src/api/names.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { pods, secrets } from '../../src/kube/resources.ts';
import { CLUSTER, type Rig } from './rig.ts';
import { isDeleted, isPaused, isSecured, remove, type State, secured, settled } from './states.ts';

export interface Workload {
  readonly name: string;
  /** Completes "The operator is killed while …". */
  readonly sentence: string;
  /** The states that it can begin in; a cluster that has none of them is brought to the first. */
  readonly from: readonly [State, ...State[]];
  readonly to: State;
  readonly act: (rig: Rig) => Promise<void>;
  readonly done: (rig: Rig) => boolean;
  /** The user stops or deletes all members. */
  readonly stopping?: true;
  /** By design it takes longer than a replacement of the operator has, which gets as long as it takes without faults in addition. */
  readonly lasts?: true;
}

const hasRotated = (rig: Rig): boolean => {
  const bundles = rig.ledger
    .ofKind(secrets, rig.namespace)
    .filter(({ metadata }) => metadata.name?.includes('-trust-'));
  const valid = findCondition(rig.cluster?.status?.conditions, 'CertificatesValid');
  const commanded = rig.cluster?.status?.trust?.commanded;
  return settled(3)(rig) && valid?.reason === 'Valid' && commanded?.['client'] === rig.rotation && bundles.length === 2;
};

/** etcd has the new password, and the operator knows it. */
const hasChanged = (rig: Rig): boolean => {
  const kept = rig.secret(keptPasswordName(CLUSTER));
  return (
    isSecured(rig) &&
    kept !== undefined &&
    textOf(kept, 'password') === rig.password &&
    kept.data?.['next'] === undefined
  );
};

const ROLLED_OUT = 5_000;

/** Every Pod has the edit, and the status reports that. */
const isRolledOut = (rig: Rig): boolean => {
  const commands = rig.ledger.ofKind(pods, rig.namespace).flatMap(({ spec }) => spec?.containers[0]?.command ?? []);
  const has = commands.filter((flag) => flag === `--snapshot-count=${ROLLED_OUT}`).length;
  return settled(3)(rig) && has === 3 && rig.cluster?.status?.updatedMembers === 3;
};

const edited = (replicas: number) => (rig: Rig) => rig.edit({ replicas });

export const WORKLOADS: readonly Workload[] = [
  {
    name: 'create-3',
    sentence: 'a cluster of three is created',
    from: ['none'],
    to: 'three',
    act: (rig) => rig.createCluster({ replicas: 3 }),
    done: settled(3),
  },
  {
    name: 'grow-1-3',
    sentence: 'a cluster grows from one to three',
    from: ['one'],
    to: 'three',
    act: edited(3),
    done: settled(3),
  },
  {
    name: 'grow-3-5',
    sentence: 'a cluster grows from three to five',
    from: ['three'],
    to: 'five',
    act: edited(5),
    done: settled(5),
  },
  {
    name: 'shrink-5-3',
    sentence: 'a cluster shrinks from five to three',
    from: ['five'],
    to: 'three',
    act: edited(3),
    done: settled(3),
  },
  {
    name: 'pause',
    sentence: 'a cluster is paused',
    from: ['three', 'resumed'],
    to: 'paused',
    act: edited(0),
    done: isPaused,
    stopping: true,
  },
  {
    name: 'resume',
    sentence: 'a paused cluster is resumed',
    from: ['paused'],
    to: 'resumed',
    act: edited(3),
    done: settled(3),
  },
  {
    name: 'replace',
    sentence: 'a member whose data is lost is replaced',
    from: ['three'],
    to: 'spent',
    act: loseFollower,
    done: (rig) => settled(3)(rig) && rig.ledger.counts(rig.namespace)['deleted EtcdMember'] === 1,
  },
  {
    name: 'roll-out',
    sentence: 'an edit reaches all members',
    from: ['three'],
    to: 'spent',
    act: (rig) => rig.edit({ options: { snapshotCount: ROLLED_OUT } }),
    done: isRolledOut,
    lasts: true,
  },
  {
    name: 'create-3-mtls-auth',
    sentence: 'a cluster of three with mTLS and auth is created',
    from: ['none'],
    to: 'secured',
    act: secured,
    done: isSecured,
  },
  {
    name: 'rotate-ca',
    sentence: 'the CA of a cluster with mTLS and auth is rotated',
    from: ['secured', 'rotated'],
    to: 'rotated',
    act: (rig) => rig.rotateCA(),
    done: hasRotated,
    lasts: true,
  },
  {
    name: 'change-password',
    sentence: 'the password of root is changed',
    from: ['secured'],
    to: 'secured',
    act: async (rig) => {
      await rig.setPassword(`changed-${rig.password}`);
      await rig.touch();
    },
    done: hasChanged,
  },
  {
    name: 'delete',
    sentence: 'a cluster is deleted',
    from: ['three', 'resumed'],
    to: 'none',
    act: remove,
    done: isDeleted,
    stopping: true,
  },
];

/** The newest member that does not lead, so that every run takes the same path. */
async function loseFollower(rig: Rig): Promise<void> {
  const leader = rig.cluster?.status?.leader;
  const names = rig.names().filter((name) => name !== leader && rig.members.some((m) => m.metadata.name === name));
  await rig.world.kubelet.loseData(rig.namespace, names.at(-1) ?? '');
}

export function workloadCalled(name: string): Workload {
  const found = WORKLOADS.find((workload) => workload.name === name);
  if (!found) throw new Error(`there is no workload ${name}; use one of ${WORKLOADS.map((w) => w.name).join(', ')}`);
  return found;
}
