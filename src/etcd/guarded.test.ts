import { expect, test } from 'vitest';
import { ModelEtcd } from '../../test/sim/model/etcd.ts';
import { modelPorts } from '../../test/sim/model/etcd-ports.ts';
import { guarded } from './guarded.ts';

function aGuardedMember() {
  const model = new ModelEtcd();
  const node = model.node('a');
  model.start(node, { initialCluster: `a=${node.peerURL}`, state: 'new' });
  const lease = { held: true };
  return {
    etcd: guarded(modelPorts(model), () => lease.held),
    lease,
    ask: { endpoint: node.endpoint, timeoutMs: 1_000 },
  };
}

test('a process that lost the Lease changes nothing in etcd, and may still read', async () => {
  const { etcd, lease, ask } = aGuardedMember();
  lease.held = false;
  const answers = await Promise.all([
    etcd.members.add(ask, ['http://b:2380'], { learner: true }),
    etcd.members.promote(ask, 1n),
    etcd.members.remove(ask, 1n),
    etcd.members.update(ask, 1n, ['http://b:2380']),
    etcd.maintenance.moveLeader(ask, 1n),
    etcd.maintenance.disarm(ask, { memberId: 1n, alarm: 'corrupt' }),
    etcd.kv.compact(ask, 1n),
  ]);
  for (const answer of answers) expect(answer.ok ? 'done' : answer.error.message).toMatch('does not hold the lease');
  const seen = await etcd.members.list(ask, { linearizable: true });
  expect(seen.ok && seen.value.members.length).toBe(1);
});

test('a process that holds the Lease may make every change', async () => {
  const { etcd, ask } = aGuardedMember();
  expect((await etcd.members.add(ask, ['http://b:2380'], { learner: true })).ok).toBe(true);
});

test('the Lease is checked when the call is sent, not when the caller got the port', async () => {
  const { etcd, lease, ask } = aGuardedMember();
  const { members } = etcd;
  lease.held = false;
  expect((await members.add(ask, ['http://b:2380'], { learner: true })).ok).toBe(false);
});
