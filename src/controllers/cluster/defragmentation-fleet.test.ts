/** How many clusters are defragmented at once, over all of them. */
import { expect, test } from 'vitest';
import { aDefrag, DEFRAG_UID, done } from '../../../test/support/builders/defrags.ts';
import { name, stepsOf, up, world } from '../../../test/support/builders/members.ts';
import { modelWorld } from '../../../test/support/builders/ports.ts';
import type { EtcdDefrag, MemberOutcome } from '../../api/etcd-defrag.ts';
import { isUnderWay } from '../../domain/defragmentation.ts';
import { keyOf } from '../../kube/object.ts';
import { clusterReconciler } from './controller.ts';
import { decide } from './decide.ts';
import { DefragmentationLedger } from './observe-defragmentation-fleet.ts';
import type { Gathered } from './observed.ts';

const LIMIT = 3;
const SIZE = 40;
const MEMBERS = [1, 2, 3].map((n) => done(name(n)));

/** Clusters that a policy of each wants to be defragmented, all at the same time. */
function aFleet() {
  const defrags = new Map<string, EtcdDefrag>();
  const ledger = new DefragmentationLedger({ all: () => defrags.values() }, LIMIT);
  const { admit } = clusterReconciler({ ...modelWorld(), defragmentations: ledger });
  const of = (n: number): string => `ns-${n}`;
  for (let n = 0; n < SIZE; n++) defrags.set(of(n), aDefrag({}, undefined, { namespace: of(n) }));
  const observe = (n: number): Gathered => {
    const o = world([up, up, up]);
    const cluster = { ...o.cluster, metadata: { ...o.cluster.metadata, namespace: of(n) } };
    const defrag = defrags.get(of(n));
    return { ...o, cluster, streams: [], defragFleet: ledger.fleet(cluster), ...(defrag && { defrag }) };
  };
  /** Executes the plan if it is admitted; whether it was. */
  const act = (o: Gathered): boolean => {
    const plan = decide(o);
    if (!admit?.(o, plan)) return false;
    const { namespace = '' } = o.cluster.metadata;
    for (const step of plan.steps) {
      if (step.do !== 'patch' || step.to.kind !== 'EtcdDefrag') continue;
      const { waitingFor, ...status } = step.fields['status'] as {
        members?: MemberOutcome[];
        waitingFor?: string | null;
      };
      const next = { ...status, ...(typeof waitingFor === 'string' && { waitingFor }) };
      defrags.set(namespace, aDefrag({}, next, { namespace }));
    }
    return true;
  };
  const running = (): readonly string[] => [...defrags].flatMap(([key, defrag]) => (isUnderWay(defrag) ? [key] : []));
  const finish = (namespace: string): void => {
    defrags.set(namespace, aDefrag({}, { phase: 'Complete', members: [...MEMBERS] }, { namespace }));
  };
  return { observe, act, running, finish, ledger, defrags };
}

test('of clusters that are all observed before the first one acts, no more than allowed start, and each gets its turn', () => {
  const { observe, act, running, finish, ledger } = aFleet();
  const numbers = Array.from({ length: SIZE }, (_, n) => n);
  const refused = numbers.map(observe).filter((o) => !act(o));
  expect([running().length, refused.length]).toEqual([LIMIT, SIZE - LIMIT]);
  for (const o of refused) expect(act(observe(Number(o.cluster.metadata.namespace?.slice(3))))).toBe(true);
  expect(running().length).toBe(LIMIT);
  const order: string[] = [];
  for (let [first] = running(); first !== undefined; [first] = running()) {
    order.push(first);
    finish(first);
    const next = ledger.next();
    if (next !== undefined) act(observe(Number(/\d+/.exec(next)?.[0])));
    expect(running().length).toBeLessThanOrEqual(LIMIT);
  }
  expect(order).toEqual(numbers.map((n) => `ns-${n}`));
});

test('one that waits says so, and no member of it leaves the client Service', () => {
  const { observe, act } = aFleet();
  for (const n of [0, 1, 2]) act(observe(n));
  const plan = decide(observe(3));
  expect(stepsOf(observe(3))).toHaveLength(1);
  expect(plan.steps).toMatchObject([
    {
      to: { kind: 'EtcdDefrag' },
      fields: { status: { waitingFor: expect.stringContaining('as many as the operator allows at once (3)') } },
    },
  ]);
});

test('a run that is held up gives its place to another cluster, and goes on without one', () => {
  const { observe, act, running, defrags } = aFleet();
  for (const n of [0, 1, 2]) act(observe(n));
  const [held] = running();
  const { namespace = '', status } = { ...defrags.get(held ?? '')?.metadata, ...defrags.get(held ?? '') };
  defrags.set(namespace, aDefrag({}, { ...status, waitingFor: 'a member must be ready' }, { namespace }));
  expect([act(observe(3)), running().length]).toEqual([true, LIMIT]);
  expect(act(observe(0)), 'it records that its first member is skipped').toBe(true);
  expect(running()).toHaveLength(LIMIT + 1);
});

test('a claim whose plan was not carried out is given up in the next reconcile of its cluster', () => {
  const { observe, ledger, defrags } = aFleet();
  const [a, b] = [observe(0), observe(1)];
  expect(ledger.claim(a.cluster, DEFRAG_UID, false)).toBe(true);
  expect([ledger.fleet(a.cluster).running, ledger.fleet(b.cluster).running]).toEqual([0, 1]);
  defrags.delete('ns-0');
  ledger.claim(a.cluster, undefined, false);
  expect(ledger.fleet(b.cluster).running).toBe(0);
  ledger.claim(a.cluster, DEFRAG_UID, false);
  ledger.forget(keyOf(a.cluster));
  expect(ledger.fleet(b.cluster).running, 'the cluster was deleted').toBe(0);
});
