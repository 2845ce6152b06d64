/** A Pod is taken away only if its successor could run. */
import { expect, test } from 'vitest';
import { down, name, stepsOf, unreachable } from '../../../test/support/builders/members.ts';
import {
  BOTH,
  bundle,
  changed,
  draining,
  narrowing,
  OLD,
  rotating,
  started,
  widening,
} from '../../../test/support/builders/rotating.ts';
import { findCondition } from '../../domain/conditions.ts';
import type { Pod } from '../../gen/kube.ts';
import { ApiError, noAnswer } from '../../kube/errors.ts';
import { wantedPod } from '../member/wanted-pod.ts';
import { decide } from './decide.ts';
import { observeSuccessors, type SuccessorPorts } from './observe-successors.ts';
import type { Gathered } from './observed.ts';

/** All certificates have expired: each of the members may be restarted first. */
const cutOff: Gathered = {
  ...rotating(
    [1, 2, 3].map(() => started(OLD, down)),
    { ...narrowing, expired: [bundle('peer', OLD)] },
  ),
  etcd: unreachable,
};
const rotated = () => draining(rotating([started(OLD), started(OLD), started(BOTH)], widening), 1);

/** The cluster after the API server was asked, and the Pods that it was asked about. */
async function asked(gathered: Gathered, error?: Error) {
  const pods: Pod[] = [];
  const dryRunCreate = (_: unknown, pod: Pod) => {
    pods.push(pod);
    return error ? Promise.reject(error) : Promise.resolve(pod);
  };
  const { images } = gathered;
  const ports = {
    client: { dryRunCreate },
    podOf: (member, cluster) => wantedPod({ member, cluster, images, hasCompany: true }),
  } as SuccessorPorts;
  const successors = await observeSuccessors(ports, gathered, new AbortController().signal);
  return { o: { ...gathered, successors }, pods };
}
const refusal = (code: number, message: string) => new ApiError('create pods', code, { reason: 'Forbidden', message });

test('the API server is asked about exactly the next Pod, under another name', async () => {
  const { o, pods } = await asked(rotated());
  expect(stepsOf(o)).toEqual([`delete ${name(2)}`]);
  const [pod] = pods;
  expect(pods).toHaveLength(1);
  expect(pod?.metadata).toMatchObject({ generateName: `${name(2)}-`, namespace: 'ns' });
  expect(pod?.metadata.name).toBeUndefined();
  expect(pod?.spec?.hostname).toBe(name(2));
});

test('a Pod whose successor would be refused is not taken away, and the status says why', async () => {
  const { o } = await asked(rotated(), refusal(403, 'denied by policy "no etcd on Mondays"'));
  expect(stepsOf(o).filter((step) => /^delete|"spec"/.test(step))).toEqual([]);
  const plan = decide(o);
  expect(findCondition(plan.status.conditions, 'Progressing')?.message).toContain('no etcd on Mondays');
  expect(plan.requeueAfterMs).toBeLessThanOrEqual(30_000);
});

test.each<[string, Error, boolean]>([
  [
    'a quota, which still counts the Pod that is deleted',
    refusal(403, 'pods "x" is forbidden: exceeded quota: q'),
    true,
  ],
  [
    'a quota that requires a limit',
    refusal(403, 'pods "x" is forbidden: failed quota: q: must specify limits.cpu'),
    false,
  ],
  ['a webhook that cannot be asked', refusal(400, 'admission webhook "a.b" does not support dry run'), true],
  ['a webhook that does not respond', refusal(500, 'Internal error occurred: failed calling webhook "a.b"'), false],
  ['a PriorityClass that was deleted', refusal(403, 'no PriorityClass with name x was found'), false],
  ['an API server that fails', refusal(500, 'etcdserver: leader changed'), false],
  ['no answer', noAnswer('create pods', 'Timeout', 'no answer'), false],
])('%s', async (_, error, restarts) => {
  const { o } = await asked(rotated(), error);
  expect(stepsOf(o).includes(`delete ${name(2)}`)).toBe(restarts);
});

test.each<[string, Error, number]>([
  [
    'a webhook that hangs until its time is over',
    refusal(500, 'failed calling webhook "a.b": context deadline exceeded'),
    1,
  ],
  ['no answer', noAnswer('create pods', 'Timeout', 'no answer'), 1],
  ['a policy, which may allow the Pod of another member', refusal(403, 'denied by policy'), 3],
])('%s: the API server is asked only as often as the deadline of a reconcile allows', async (_, error, times) => {
  const { o, pods } = await asked(cutOff, error);
  expect(pods).toHaveLength(times);
  expect(stepsOf(o).filter((step) => /^delete|"spec"/.test(step))).toEqual([]);
});

test('a process that only observes cannot ask, and shows what it would do', async () => {
  const { o } = await asked(rotated(), noAnswer('create pods', 'NotLeading', 'no lease'));
  expect(stepsOf(o)).toEqual([`delete ${name(2)}`]);
});

test('nothing is asked while no member may be restarted', async () => {
  const other = { spec: { image: { repository: 'evil.example.com/etcd' } } };
  const idle = rotating([started(OLD), started(OLD), started(OLD)], {});
  const unhealthy = rotating([started(OLD), started(OLD), started(BOTH, { down: true })], widening);
  const forbidden = rotating([started(BOTH), started(OLD, other), started(BOTH)], widening);
  const terminating = changed(rotated(), 1, (m) => ({ ...m, pvc: 'terminating' }));
  for (const o of [idle, unhealthy, forbidden, terminating]) {
    const { pods, o: after } = await asked(o);
    expect(pods).toEqual([]);
    expect(stepsOf(after).filter((step) => /^delete|"spec"/.test(step))).toEqual([]);
  }
});
