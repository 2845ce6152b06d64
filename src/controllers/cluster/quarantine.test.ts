/** PVCs of former members: which are kept, for how long, and when one is given up early. */
import { describe, expect, test } from 'vitest';
import { aVolume, condition } from '../../../test/support/builders/builders.ts';
import { at, DAY, down, type Is, joining, name, stepsOf, up, world } from '../../../test/support/builders/members.ts';
import { remembering } from '../../../test/support/builders/plan.ts';
import { EVIDENCE } from '../../api/etcd-member.ts';
import {
  memberLabels,
  QUARANTINE_LABEL,
  QUARANTINE_REASON_ANNOTATION,
  QUARANTINED_AT_ANNOTATION,
  type Quarantine,
  volumeClaimName,
} from '../../api/names.ts';
import type { PersistentVolumeClaim } from '../../gen/kube.ts';
import { decide } from './decide.ts';
import type { Gathered } from './observed.ts';

const HOUR = 60 * 60_000;
const pvcOf = (n: number, metadata: object = {}, status: object = {}): PersistentVolumeClaim => ({
  ...aVolume(),
  metadata: {
    ...aVolume().metadata,
    name: volumeClaimName(name(n)),
    uid: `pvc-${n}`,
    resourceVersion: '5',
    ...metadata,
  },
  status,
});
const withPvcs = (o: Gathered, pvcs: readonly (PersistentVolumeClaim | undefined)[]): Gathered => ({
  ...o,
  members: o.members.map((m, i) => {
    const { pvc: _, ...rest } = m;
    const pvcObject = pvcs[i];
    return pvcObject ? { ...rest, pvc: 'present', pvcObject } : rest;
  }),
});
const quarantined = (n: number, reason: Quarantine, ageMs: number): PersistentVolumeClaim =>
  pvcOf(n, {
    labels: { ...memberLabels('db', name(n)), [QUARANTINE_LABEL]: reason },
    annotations: { [QUARANTINED_AT_ANNOTATION]: at(ageMs), [QUARANTINE_REASON_ANNOTATION]: 'DataInvalid' },
  });

const ofEarlierCluster = (pvc: PersistentVolumeClaim): PersistentVolumeClaim => ({
  ...pvc,
  metadata: { ...pvc.metadata, creationTimestamp: at(DAY + HOUR) },
});
const ofYesterday = (o: Gathered): Gathered => ({
  ...o,
  cluster: { ...o.cluster, metadata: { ...o.cluster.metadata, creationTimestamp: at(DAY) } },
});

const failing = (reason: string): Gathered => {
  const o = world([up, up, { ...down, evidence: reason }]);
  return withPvcs(o, [pvcOf(1), pvcOf(2), pvcOf(3)]);
};
const kinds = (o: Gathered) =>
  decide(o).steps.map((step) => `${step.do} ${'to' in step ? step.to.kind : 'what' in step ? step.what.kind : ''}`);

describe('before a member is replaced, its PVC is quarantined', () => {
  test.each([
    EVIDENCE.dataInvalid,
    EVIDENCE.crashLooping,
    EVIDENCE.volumeFull,
    EVIDENCE.removed,
    EVIDENCE.nodeLost, // its node is NotReady, and may come back
  ])('for %s', (reason) => {
    const o = failing(reason);
    expect(kinds(o)).toEqual(['patch PersistentVolumeClaim', 'delete EtcdMember']);
    expect(decide(o).steps[0]).toMatchObject({
      to: { uid: 'pvc-3' },
      fields: {
        metadata: {
          labels: { [QUARANTINE_LABEL]: 'member-replaced' },
          annotations: { [QUARANTINE_REASON_ANNOTATION]: reason },
        },
      },
    });
  });
  test('also when its data differs from that of the others', () => {
    const o = world([{ hash: 'a', alarm: 'CORRUPT' }, { hash: 'b' }, { hash: 'b' }], { leader: 2 });
    expect(kinds(withPvcs(o, [pvcOf(1), pvcOf(2), pvcOf(3)]))).toEqual([
      'patch PersistentVolumeClaim',
      'delete EtcdMember',
    ]);
  });
  test.each([EVIDENCE.dataLost, EVIDENCE.volumeLost, EVIDENCE.pvcTerminating])(
    'not for %s: it was not judged',
    (reason) => expect(kinds(failing(reason))).toEqual(['delete EtcdMember']),
  );
  test('not when its node was deleted or is out of service: the volume is lost with it', () => {
    const o = failing(EVIDENCE.nodeLost);
    const members = o.members.map((m) => ({ ...m, nodeGone: true }));
    expect(kinds({ ...o, members })).toEqual(['delete EtcdMember']);
  });
  test.each<[string, Gathered]>([
    [
      'the user turned it off',
      (() => {
        const o = failing(EVIDENCE.dataInvalid);
        const spec = { ...o.cluster.spec, volumeQuarantine: { enabled: false } };
        return { ...o, cluster: { ...o.cluster, spec } };
      })(),
    ],
    [
      'it is quarantined already: the operator was killed',
      withPvcs(failing(EVIDENCE.dataInvalid), [pvcOf(1), pvcOf(2), quarantined(3, 'member-replaced', 0)]),
    ],
    [
      'a webhook refuses the label: the cluster is repaired all the same',
      {
        ...failing(EVIDENCE.dataInvalid),
        ...remembering('no', {
          in: 'steps',
          row: 'replaceLost',
          target: `PersistentVolumeClaim ${volumeClaimName(name(3))}`,
          is: 'refused',
        }),
      },
    ],
  ])('not when %s', (_, o) => {
    expect(kinds(o)).toEqual(['delete EtcdMember']);
  });
});

describe('a quarantined PVC', () => {
  const keeping = (...pvcs: readonly PersistentVolumeClaim[]): Gathered => ({
    ...world([up, up, up]),
    quarantined: pvcs,
  });
  test('is reported with the reason and the time', () => {
    expect(decide(keeping(quarantined(7, 'member-replaced', HOUR))).status.quarantinedVolumes).toEqual([
      {
        name: volumeClaimName(name(7)),
        member: name(7),
        reason: 'DataInvalid',
        until: at(-23 * HOUR).replace('.000Z', 'Z'),
      },
    ]);
    expect(decide(keeping()).status).not.toHaveProperty('quarantinedVolumes');
  });
  test.each<[Quarantine, number, boolean]>([
    ['member-replaced', DAY - HOUR, false],
    ['member-replaced', DAY, true],
    ['member-removed', 6 * DAY, false],
    ['member-removed', 7 * DAY, true],
  ])('%s is deleted after its time (%d ms: %s)', (reason, ageMs, over) => {
    expect(stepsOf(keeping(quarantined(7, reason, ageMs)))).toEqual(over ? [`delete ${volumeClaimName(name(7))}`] : []);
  });
  test('is kept as long as retained ones when the user has set deletionPolicy to Retain since', () => {
    const o = keeping(quarantined(7, 'member-replaced', HOUR), quarantined(8, 'member-removed', HOUR));
    const cluster = { ...o.cluster, spec: { ...o.cluster.spec, deletionPolicy: 'Retain' as const } };
    const label = `{"metadata":{"labels":{"${QUARANTINE_LABEL}":"member-removed"}}}`;
    const relabel = `propagateDeletionPolicy: patch ${volumeClaimName(name(7))} ${label}`;
    const pvcSteps = (observed: Gathered) => stepsOf(observed).filter((step) => step.includes('data-'));
    expect([pvcSteps(o), pvcSteps({ ...o, cluster })]).toEqual([[], [relabel]]);
  });
  test('of an earlier cluster of the same name is kept when the user turns quarantine off', () => {
    const o = ofYesterday(keeping(ofEarlierCluster(quarantined(7, 'member-replaced', 0))));
    const spec = { ...o.cluster.spec, volumeQuarantine: { enabled: false } };
    expect(stepsOf({ ...o, cluster: { ...o.cluster, spec } })).toEqual([]);
  });
  test('is deleted at once when the user turns quarantine off', () => {
    const o = keeping(quarantined(7, 'member-replaced', 0));
    const spec = { ...o.cluster.spec, volumeQuarantine: { enabled: false } };
    expect(stepsOf({ ...o, cluster: { ...o.cluster, spec } })).toEqual([`delete ${volumeClaimName(name(7))}`]);
  });
});

describe('a new member gets no volume', () => {
  const QUOTA = 'Pod x does not exist yet; exceeded quota: q, requested: persistentvolumeclaims=1, used: 3, limited: 3';
  const FULL = 'pod phase: Pending; Unschedulable: 0/3 nodes are available: 3 node(s) did not have enough free storage';
  const waiting = (
    message: string,
    pvc: PersistentVolumeClaim | undefined,
    others: readonly Is[] = [up, up],
    kept = quarantined(7, 'member-replaced', HOUR),
  ): Gathered => {
    const o = world([...others, { ...joining, ageMs: 3 * 60_000, pod: { is: 'absent' } }]);
    const last = o.members.length - 1;
    const made = withPvcs(o, [...others.map((__, i) => pvcOf(i + 1)), pvc]);
    const members = made.members.map((m, i) => {
      const conditions = [{ ...condition('Ready', 'False', 'PodNotReady'), message }];
      return i === last ? { ...m, object: { ...m.object, status: { conditions } } } : m;
    });
    return { ...made, members, quarantined: [kept] };
  };
  const pending = pvcOf(3, {}, { phase: 'Pending' });
  const given = [`delete ${volumeClaimName(name(7))}`];
  test.each<[string, Gathered, readonly string[]]>([
    ['because of a quota: the quarantined PVC makes room', waiting(QUOTA, undefined), given],
    ['because the storage is full', waiting(FULL, pending), given],
    ['for another reason', waiting('pod phase: Pending; Unschedulable: Insufficient cpu', pending), []],
    ['because of a quota for Pods', waiting('exceeded quota: q, requested: pods=1', undefined), []],
    ['and its PVC is bound', waiting(FULL, pvcOf(3, {}, { phase: 'Bound' })), []],
    [
      'and the PVC is retained by choice',
      waiting(QUOTA, undefined, [up, up], quarantined(7, 'member-removed', HOUR)),
      [],
    ],
    [
      'because its StorageClass does not exist: no room would help',
      waiting('pod phase: Pending; Unschedulable: storageclass.storage.k8s.io "fast" not found', pending),
      [],
    ],
    [
      'and the PVC is of an earlier cluster of the same name, whose data no other one has',
      ofYesterday(waiting(QUOTA, undefined, [up, up], ofEarlierCluster(quarantined(7, 'member-replaced', HOUR)))),
      [],
    ],
    ['and no quorum has the data', waiting(QUOTA, undefined, [up, down, down]), []],
  ])('%s', (_, o, steps) => {
    expect(stepsOf(o)).toEqual(steps);
  });
  test('one PVC is given up at a time: the new member needs some time to use the room', () => {
    const o = waiting(QUOTA, undefined);
    const { latch } = decide(o);
    const after = (ms: number): Gathered => {
      const status = { ...o.cluster.status, ...latch };
      return { ...o, now: o.now + ms, cluster: { ...o.cluster, status } };
    };
    expect([stepsOf(after(119_000)), stepsOf(after(120_000))]).toEqual([[], given]);
  });
  test('an Event says what was given up', () => {
    expect(decide(waiting(QUOTA, undefined)).events).toContainEqual(
      expect.objectContaining({ type: 'Warning', reason: 'QuarantineReleased' }),
    );
  });
});
