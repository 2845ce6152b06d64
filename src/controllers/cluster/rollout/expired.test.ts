/** Certificates have expired, and no new connection reaches the members: who is restarted, and when. */
import { describe, expect, test } from 'vitest';
import { down, type Is, name, stepsOf, unreachable } from '../../../../test/support/builders/members.ts';
import {
  bundle,
  changed,
  memory,
  NEW,
  narrowing,
  OLD,
  rotating,
  started,
  unready,
} from '../../../../test/support/builders/rotating.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';

/** The bundle with the old CA has expired on the peer port, and the new one is recorded. */
const cutOff = (members: readonly Is[], etcd: Gathered['etcd'] = unreachable): Gathered => ({
  ...rotating(members, { ...narrowing, expired: [bundle('peer', OLD)] }),
  etcd,
});
/** Its etcd does not respond to the operator, and its kubelet reports it as ready. */
const silent = (o: Gathered): Gathered => ({
  ...o,
  members: o.members.map(({ object, pod, pvc }) => ({ object, pod, ...(pvc && { pvc }) })),
});
const ready = (o: Gathered, ...at: readonly number[]): Gathered =>
  at.reduce(
    (all, i) => changed(all, i, (m) => (m.pod.is === 'present' ? { ...m, pod: { ...m.pod, ready: true } } : m)),
    o,
  );
/** The same of the client port: peers trust each other. */
function onClientPort(o: Gathered): Gathered {
  const [trust] = o.certificates.trusts;
  const tls = (digest: string) => ({ client: { leaf: 'db-server-mounted', bundle: bundle('client', digest) } });
  const has = (m: Gathered['members'][number], digest: string): boolean =>
    m.pod.is === 'present' && m.pod.tls?.peer?.bundle === bundle('peer', digest);
  return {
    ...o,
    cluster: { ...o.cluster, status: { ...o.cluster.status, trust: { client: NEW } } },
    members: o.members.map((m) =>
      m.pod.is === 'present' ? { ...m, pod: { ...m.pod, tls: tls(has(m, OLD) ? OLD : NEW) } } : m,
    ),
    certificates: {
      ...o.certificates,
      trusts: trust ? [{ ...trust, part: 'client' as const, expired: [bundle('client', OLD)] }] : [],
    },
  };
}
const progress = (o: Gathered): string => findCondition(decide(o).status.conditions, 'Progressing')?.message ?? '';
const three = [started(OLD, down), started(OLD, down), started(OLD, down)];

describe('the peer port', () => {
  test('no member is ready: one after the other restarts, without waiting for the others', () => {
    expect(decide(cutOff(three)).rule).toBe('restartExpired');
    expect(stepsOf(cutOff(three))).toEqual([`delete ${name(1)}`]);
    const starting = [started(NEW, down), started(OLD, down), started(OLD, down)];
    expect(stepsOf(cutOff(starting))).toEqual([`delete ${name(2)}`]);
  });

  test('they restart before a member is removed, which needs a quorum', () => {
    const o = cutOff(three);
    const spec = { ...o.cluster.spec, replicas: 1 };
    expect(decide({ ...o, cluster: { ...o.cluster, spec } }).rule).toBe('restartExpired');
  });

  test('the last one restarts although the others are a quorum again', () => {
    expect(
      stepsOf(
        cutOff(
          [started(NEW), started(NEW), started(OLD, down)],
          rotating([started(NEW), started(NEW), started(OLD)], narrowing).etcd,
        ),
      ),
    ).toEqual([`delete ${name(3)}`]);
  });

  test('a quorum still serves over connections that were opened before: no member that is ready restarts', () => {
    const o = ready(cutOff(three), 0, 1, 2);
    expect(stepsOf(o)).toEqual([]);
    expect(progress(o)).toContain('delete the Pods of all members');
    expect(stepsOf(ready(cutOff(three), 0, 1))).toEqual([`delete ${name(3)}`]); // it takes no part in it
  });

  test.each<[string, Gathered]>([
    ['all members respond', { ...rotating([started(OLD), started(OLD), started(OLD)], narrowing) }],
    ['nothing has expired', { ...rotating(three, narrowing), etcd: unreachable }],
    [
      'the new CA bundle is not recorded yet',
      { ...rotating(three, { expired: [bundle('peer', OLD)] }), etcd: unreachable },
    ],
    ['the data is in memory', cutOff(three.map((is) => ({ ...is, ...memory() })))],
    [
      'the PVC is being deleted',
      {
        ...cutOff([started(OLD, down)]),
        members: cutOff([started(OLD, down)]).members.map((m) => ({ ...m, pvc: 'terminating' as const })),
      },
    ],
    [
      'the cluster is paused',
      { ...cutOff(three), cluster: { ...cutOff(three).cluster, spec: { ...cutOff(three).cluster.spec, replicas: 0 } } },
    ],
  ])('none is restarted: %s', (_, o) => {
    expect(decide(o).rule).not.toBe('restartExpired');
    expect(stepsOf(o).filter((step) => step.startsWith('delete'))).toEqual([]);
  });
});

describe('the client port, while peers trust each other', () => {
  const all = silent(onClientPort(cutOff([started(OLD), started(OLD), started(OLD)])));

  test('one member restarts while all are ready', () => {
    expect(stepsOf(all)).toEqual([`delete ${name(1)}`]);
  });

  test('the next one waits until it is ready again', () => {
    const restarted = unready(silent(onClientPort(cutOff([started(NEW), started(OLD), started(OLD)]))), 0);
    expect(stepsOf(restarted)).toEqual([]);
    expect(stepsOf(ready(restarted, 0))).toEqual([`delete ${name(2)}`]);
  });

  test('none restarts while the next Pod of another one may run already, which may be part of a quorum', () => {
    const replaced = (endedMsAgo: number): Gathered => {
      const o = onClientPort(cutOff([started(NEW, down), started(OLD, down), started(OLD, down)]));
      const pods = [{ terminating: true, endsBy: o.now - endedMsAgo }, {}, {}];
      return pods.reduce<Gathered>(
        (all, pod, i) =>
          changed(all, i, (m) =>
            m.pod.is === 'present' ? { ...m, pod: { ...m.pod, runningSince: o.now - 3_600_000, ...pod } } : m,
          ),
        o,
      );
    };
    expect(stepsOf(replaced(1_000))).toEqual([]);
    expect(stepsOf(replaced(60_000))).toEqual([`delete ${name(2)}`]); // its node may be lost
  });

  test('the only member restarts', () => {
    expect(stepsOf(silent(onClientPort(cutOff([started(OLD)]))))).toEqual([`delete ${name(1)}`]);
  });
});
