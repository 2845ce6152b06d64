/** Observed states of a member, for test tables. */

import { etcdMembers, QUARANTINE_LABEL, QUARANTINED_AT_ANNOTATION, ROLE_LABEL } from '../../../src/api/names.ts';
import { decide } from '../../../src/controllers/member/decide.ts';
import type { Observed } from '../../../src/controllers/member/observed.ts';
import { ownedBy } from '../../../src/domain/ownership.ts';
import { NO_MEMORY } from '../../../src/runtime/plan.ts';
import {
  aCluster,
  aMember,
  aPod,
  aVolume,
  CLUSTER_ID,
  FORMED,
  LATCHED,
  MEMBER_ID,
  NOW,
  POD_UID,
  SEED_NAME,
} from './builders.ts';
import { textsOf } from './plan.ts';

export const absent = { is: 'absent' } as const;
export const foreign = { is: 'foreign', owner: 'EtcdMember x (uid 1)' } as const;
export const ours = <T>(object: T) => ({ is: 'ours', object }) as const;
export const voter = { [ROLE_LABEL]: 'voter' };
export const readyPod = ours(aPod({ ready: true, labels: voter }));
export const answers = { is: 'answers', clusterID: CLUSTER_ID, memberID: MEMBER_ID, version: '3.6.16' } as const;
export const joined = { memberID: MEMBER_ID, podUID: POD_UID, podName: SEED_NAME, isVoter: true };
export const inMemory = { storage: { size: '64Mi', medium: 'Memory' } } as const;
export const ended = ours(aPod({ status: { phase: 'Failed', reason: 'Evicted' } }));
export const retain = { deletionPolicy: 'Retain' } as const;
/** As earlier operators created it. */
export const ownedVolume = {
  ...aVolume(),
  metadata: { ...aVolume().metadata, annotations: {}, ownerReferences: ownedBy(etcdMembers, aMember()) },
};

export const terminatingVolume = ours({ ...aVolume(), metadata: { ...aVolume().metadata, deletionTimestamp: 'now' } });

/** The cluster controller has quarantined it this long ago. */
export const replacedVolume = (agoMs: number) => {
  const { labels, annotations, ...metadata } = aVolume().metadata;
  const at = { ...annotations, [QUARANTINED_AT_ANNOTATION]: new Date(NOW - agoMs).toISOString() };
  const labelled = { ...labels, [QUARANTINE_LABEL]: 'member-replaced' };
  return ours({ ...aVolume(), metadata: { ...metadata, labels: labelled, annotations: at } });
};

/** A running voter. Tests state what differs. */
export const world = (patch: Partial<Observed> = {}): Observed => ({
  now: NOW,
  memory: NO_MEMORY,
  member: aMember({ status: joined }),
  cluster: aCluster({ status: FORMED }),
  policy: 'Delete',
  pod: readyPod,
  volume: ours(aVolume()),
  node: { is: 'present', name: 'node-1', outOfService: false },
  volumeOnNode: false,
  nodeLostAfterMs: 600_000,
  etcd: answers,
  peers: { is: 'none' },
  hasCompany: true,
  images: { repository: 'quay.io/coreos/etcd', allowed: [] },
  ...patch,
});
export const fresh = (patch: Partial<Observed> = {}): Observed =>
  world({
    member: aMember(),
    cluster: aCluster({ status: LATCHED }),
    pod: absent,
    volume: absent,
    etcd: { is: 'notAsked' },
    ...patch,
  });
export const leaving = (patch: Partial<Observed> = {}): Observed =>
  world({ member: aMember({ status: joined, deleting: true }), ...patch });
export const stepsOf = (o: Observed): readonly string[] =>
  textsOf(decide(o), (s) => {
    if (s.do === 'create') return `create ${s.object.kind}`;
    if (s.do === 'call') throw new Error('the member controller makes no calls');
    return `${s.do} ${(s.do === 'delete' ? s.what : s.to).kind}`;
  });
