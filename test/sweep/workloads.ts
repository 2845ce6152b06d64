/** User operations on a cluster. Each is prepared without faults; the fault is installed only then. */
import { textOf } from '../../src/access/evaluate/secret-set.ts';
import { keptPasswordName, ROTATE_CA_ANNOTATION } from '../../src/api/names.ts';
import type { Tls } from '../../src/api/tls.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { pods, secrets } from '../../src/kube/resources.ts';
import { eventually } from '../support/servers/processes.ts';
import { clusters } from '../support/servers/world.ts';
import { CLUSTER, type Rig, ROOT } from './rig.ts';

export interface Workload {
  readonly name: string;
  /** Completes "The operator is killed while …". */
  readonly sentence: string;
  readonly prepare?: (rig: Rig) => Promise<void>;
  readonly act: (rig: Rig) => Promise<void>;
  readonly done: (rig: Rig) => boolean;
  /** The user stops or deletes all members. */
  readonly stopping?: true;
  /** By design it takes longer than a replacement of the operator has, which gets as long as it takes without faults in addition. */
  readonly lasts?: true;
}

/** The status is of the current generation, reports Reconciled, and this many members serve. */
function atRest(rig: Rig, replicas: number): boolean {
  const { cluster } = rig;
  const progressing = findCondition(cluster?.status?.conditions, 'Progressing');
  const available = findCondition(cluster?.status?.conditions, 'Available');
  return (
    progressing?.status === 'False' &&
    progressing.observedGeneration === cluster?.metadata.generation &&
    (available?.status === 'True') === replicas > 0 &&
    (cluster?.status?.readyMembers ?? 0) === replicas &&
    rig.world.kubelet.running(rig.namespace).filter((run) => run.ready).length === replicas
  );
}

const settled = (replicas: number) => (rig: Rig) => atRest(rig, replicas) && rig.members.length === replicas;
const paused = (rig: Rig) => atRest(rig, 0) && rig.ledger.ofKind(pods, rig.namespace).length === 0;

const until = (rig: Rig, what: string, holds: (rig: Rig) => boolean): Promise<unknown> =>
  eventually(what, () => holds(rig) || undefined, { timeoutMs: 60_000, seen: () => rig.cluster?.status });

const made = (replicas: number) => async (rig: Rig) => {
  await rig.createCluster({ replicas });
  await until(rig, `a cluster of ${replicas}`, settled(replicas));
};

const MTLS: Tls = { client: { managed: {} }, peer: { managed: {} } };
const AUTH = { enabled: true, rootCredentialsSecretRef: { name: ROOT } };

const secured = async (rig: Rig): Promise<void> => {
  await rig.setPassword('first');
  await rig.createCluster({ replicas: 3, tls: MTLS, auth: AUTH });
};

const isSecured = (rig: Rig): boolean => {
  const holds = (type: string) => findCondition(rig.cluster?.status?.conditions, type)?.status === 'True';
  return settled(3)(rig) && holds('AuthEnabled') && holds('CertificatesValid');
};

const madeSecured = async (rig: Rig): Promise<void> => {
  await secured(rig);
  await until(rig, 'a cluster with TLS and auth', isSecured);
};

const ROTATION = 'one';
const hasRotated = (rig: Rig): boolean => {
  const bundles = rig.ledger
    .ofKind(secrets, rig.namespace)
    .filter(({ metadata }) => metadata.name?.includes('-trust-'));
  const valid = findCondition(rig.cluster?.status?.conditions, 'CertificatesValid');
  const commanded = rig.cluster?.status?.trust?.commanded;
  return settled(3)(rig) && valid?.reason === 'Valid' && commanded?.['client'] === ROTATION && bundles.length === 2;
};

/** etcd has the new password, and the operator knows it. */
const hasChanged = (rig: Rig): boolean => {
  const kept = rig.secret(keptPasswordName(CLUSTER));
  return (
    isSecured(rig) && kept !== undefined && textOf(kept, 'password') === 'second' && kept.data?.['next'] === undefined
  );
};

const edited = (replicas: number) => (rig: Rig) => rig.edit({ replicas });

export const WORKLOADS: readonly Workload[] = [
  {
    name: 'create-3',
    sentence: 'a cluster of three is created',
    act: (rig) => rig.createCluster({ replicas: 3 }),
    done: settled(3),
  },
  {
    name: 'grow-1-3',
    sentence: 'a cluster grows from one to three',
    prepare: made(1),
    act: edited(3),
    done: settled(3),
  },
  {
    name: 'grow-3-5',
    sentence: 'a cluster grows from three to five',
    prepare: made(3),
    act: edited(5),
    done: settled(5),
  },
  {
    name: 'shrink-5-3',
    sentence: 'a cluster shrinks from five to three',
    prepare: made(5),
    act: edited(3),
    done: settled(3),
  },
  {
    name: 'pause',
    sentence: 'a cluster is paused',
    prepare: made(3),
    act: edited(0),
    done: paused,
    stopping: true,
  },
  {
    name: 'resume',
    sentence: 'a paused cluster is resumed',
    prepare: async (rig) => {
      await made(3)(rig);
      await rig.edit({ replicas: 0 });
      await until(rig, 'a paused cluster', paused);
    },
    act: edited(3),
    done: settled(3),
  },
  {
    name: 'replace',
    sentence: 'a member whose data is lost is replaced',
    prepare: made(3),
    act: loseFollower,
    done: (rig) => settled(3)(rig) && rig.ledger.counts(rig.namespace)['deleted EtcdMember'] === 1,
  },
  {
    name: 'create-3-mtls-auth',
    sentence: 'a cluster of three with mTLS and auth is created',
    act: secured,
    done: isSecured,
  },
  {
    name: 'rotate-ca',
    sentence: 'the CA of a cluster with mTLS and auth is rotated',
    prepare: madeSecured,
    act: (rig) => rig.patch({ metadata: { annotations: { [ROTATE_CA_ANNOTATION]: ROTATION } } }),
    done: hasRotated,
    lasts: true,
  },
  {
    name: 'change-password',
    sentence: 'the password of root is changed',
    prepare: madeSecured,
    act: async (rig) => {
      await rig.setPassword('second');
      await rig.edit({ progressDeadlineSeconds: 601 }); // users' Secrets are not watched: the edit makes the operator read them
    },
    done: hasChanged,
  },
  {
    name: 'delete',
    sentence: 'a cluster is deleted',
    prepare: made(3),
    act: remove,
    done: (rig) => rig.ledger.objects(rig.namespace).length === 0,
    stopping: true,
  },
];

/** The newest member that does not lead, so that every run takes the same path. */
async function loseFollower(rig: Rig): Promise<void> {
  const leader = rig.cluster?.status?.leader;
  const names = rig.names().filter((name) => name !== leader && rig.members.some((m) => m.metadata.name === name));
  await rig.world.kubelet.loseData(rig.namespace, names.at(-1) ?? '');
}

async function remove(rig: Rig): Promise<void> {
  const uid = rig.made?.metadata.uid ?? '';
  await rig.world.admin.delete(clusters, { namespace: rig.namespace, name: CLUSTER }, { uid });
}

export function workloadCalled(name: string): Workload {
  const found = WORKLOADS.find((workload) => workload.name === name);
  if (!found) throw new Error(`there is no workload ${name}; use one of ${WORKLOADS.map((w) => w.name).join(', ')}`);
  return found;
}
