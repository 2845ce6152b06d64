import { describe, expect, test } from 'vitest';
import { condition, NOW } from '../../../test/support/builders/builders.ts';
import { facts, HEALTHY } from '../../../test/support/builders/plugin.ts';
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdClusterStatus } from '../../api/etcd-cluster-status.ts';
import { fleetRows } from '../assess/fleet.ts';
import { fleetTable } from './fleet.ts';

function named(namespace: string, name: string, status: Partial<EtcdClusterStatus> = {}): EtcdCluster {
  const { cluster } = facts({ status });
  return { ...cluster, metadata: { ...cluster.metadata, namespace, name, creationTimestamp: '2025-12-20T12:00:00Z' } };
}
const changed = (...conditions: typeof HEALTHY) => ({
  conditions: [...HEALTHY.filter(({ type }) => !conditions.some((each) => each.type === type)), ...conditions],
});

const FLEET = [
  named('a', 'good', { leader: 'good-aaaa1', members: [{ name: 'x', role: 'leader', quotaUsedPercent: 90 }] }),
  named('a', 'growing', changed(condition('Progressing', 'True', 'Scaling', 'waits for learner growing-aaaa3'))),
  named('b', 'unsafe', {
    quorum: { needed: 2, healthy: 2, margin: 0 },
    readyMembers: 2,
    ...changed(condition('Degraded', 'True', 'MembersUnhealthy', 'unsafe-aaaa3 is not ready')),
  }),
  named('b', 'down', {
    quorum: { needed: 2, healthy: 1, margin: -1 },
    readyMembers: 1,
    ...changed(
      condition(
        'Available',
        'False',
        'QuorumLost',
        'quorum lost: 1 of 3 voters are ready, and 2 are needed: db-aaaa1 is on node worker-1, which is not ready',
      ),
    ),
  }),
  named('c', 'stale-backup', changed(condition('BackupFresh', 'False', 'BackupTooOld', 'm'))),
  named('c', 'paused', changed(condition('Available', 'False', 'Paused', 'paused: the data is kept'))),
];
const options = { allNamespaces: true, wide: false, now: NOW };

describe('the table of clusters', () => {
  test('has those that need attention first', async () => {
    const text = fleetTable({ colour: false, width: 100 }, fleetRows(FLEET, NOW), options);
    await expect(`${text}\n`).toMatchFileSnapshot('golden/fleet.txt');
    expect(text.split('\n').filter((line) => line.length > 100)).toEqual([]);
  });
  test('with -o wide, has whole sentences and the leaders', async () => {
    const text = fleetTable({ colour: false, width: 100 }, fleetRows(FLEET, NOW), { ...options, wide: true });
    await expect(`${text}\n`).toMatchFileSnapshot('golden/fleet-wide.txt');
  });
  test('stays aligned on a terminal without room for sentences', () => {
    const text = fleetTable({ colour: false, width: 60 }, fleetRows(FLEET, NOW), options);
    expect(text).not.toContain('ATTENTION');
  });
});

test('a thousand clusters are a thousand lines', () => {
  const many = Array.from({ length: 1_000 }, (_, index) => named('n', `c${index}`));
  expect(fleetTable({ colour: true, width: 120 }, fleetRows(many, NOW), options).split('\n')).toHaveLength(1_003);
});
