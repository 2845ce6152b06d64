/** Every rule asks the disruption check: random clusters, and the order of rules must not matter. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  down,
  type Is,
  id,
  learner,
  lost,
  name,
  up,
  withCredentials,
  world,
} from '../../../test/support/builders/members.ts';
import { clusters } from '../../../test/support/builders/members-arbitrary.ts';
import { quorumOf } from '../../domain/quorum.ts';
import { MAINTENANCE, MEMBERSHIP } from './decide.ts';
import { quorumView } from './disruption-view.ts';
import type { ClusterDecision, Observed } from './observed.ts';
import { rebuildJoining } from './rules/growth.ts';
import { replaceLost } from './rules/repair.ts';
import { deleteRemovedMember, shrink } from './rules/shrink.ts';

/** The names of the members that the steps remove, delete or restart. */
const disrupted = (decision: ClusterDecision | undefined): readonly string[] =>
  (decision?.steps ?? []).flatMap((step) => {
    if (step.do === 'delete') return [step.what.name];
    return step.do === 'call' && step.call.name === 'remove' ? [step.call.target] : [];
  });

test('whichever rule decides, at most one voter is disrupted, and a quorum of the others is healthy', () => {
  const disruptions = new Set<string>();
  fc.assert(
    fc.property(clusters, (gathered) => {
      const o = withCredentials(gathered);
      const { voters } = quorumView(o);
      for (const { name: rule, rule: decide } of [...MEMBERSHIP, ...MAINTENANCE]) {
        const names = disrupted(decide(o));
        const members = voters.filter((voter) => names.includes(voter.name));
        if (members.length === 0) continue;
        disruptions.add(rule);
        expect(names).toHaveLength(1);
        const others = voters.filter((voter) => !members.includes(voter));
        const healthy = others.filter((voter) => voter.healthy).length;
        // One or two voters are restarted one after the other, although none can be spared.
        expect(healthy).toBeGreaterThanOrEqual(rule === 'restart' ? others.length : quorumOf(others.length));
      }
    }),
    { numRuns: 1_000 },
  );
  expect(disruptions).toEqual(new Set(['removeLeaving', 'removeOrphanMember', 'replaceLost', 'restart', 'shrink']));
});

describe('an EtcdMember that does not have the deletionPolicy Retain of its cluster yet', () => {
  const retained = (members: readonly Is[], replicas = members.length): Observed =>
    withCredentials(world(members, { replicas, spec: { deletionPolicy: 'Retain' } }));
  test.each<[string, (o: Observed) => ClusterDecision | undefined, Observed]>([
    ['is not deleted to scale down', shrink, retained([up, up, up], 2)],
    [
      'is not deleted after etcd has removed the member',
      deleteRemovedMember,
      retained([up, up, { as: 'unlisted', ...down }]),
    ],
    ['is not replaced', replaceLost, retained([up, up, lost])],
    [
      'is not recreated with a new spec',
      rebuildJoining,
      retained([up, up, { as: 'learner', fresh: true, spec: { version: '3.5.0' } }]),
    ],
  ])('%s', (_, rule, o) => {
    expect(disrupted(rule(o))).toEqual([]);
    const recorded = o.members.map((m) => {
      const spec = { ...m.object.spec, deletionPolicy: 'Retain' } as const;
      return { ...m, object: { ...m.object, spec } };
    });
    expect(disrupted(rule({ ...o, members: recorded }))).toEqual([name(3)]);
    const { deletionPolicy: __, ...spec } = o.cluster.spec;
    const deletes = { ...o, members: recorded, cluster: { ...o.cluster, spec } };
    expect(disrupted(rule(deletes)), 'one that keeps more than asked is').toEqual([name(3)]);
  });
});

describe('the view', () => {
  test('has a voter at a reused address as unhealthy', () => {
    const { voters } = quorumView(withCredentials(world([up, { answersAs: 1 }, up])));
    expect(voters.map(({ healthy }) => healthy)).toEqual([true, false, true]);
  });

  test('has members that etcd lists without an EtcdMember', () => {
    const o = world([up], { alsoListed: [{ id: id(8), name: '', peerURLs: ['http://x:2380'], isLearner: false }] });
    expect(quorumView(withCredentials(o)).voters[1]).toMatchObject({
      name: 'http://x:2380',
      healthy: false,
      object: 'missing',
    });
  });

  test('has learners and EtcdMembers that etcd does not list as joiners', () => {
    const { joiners } = quorumView(withCredentials(world([up, learner, { as: 'unlisted', ...down }])));
    expect(joiners.map((joiner) => [joiner.id, joiner.name])).toEqual([
      [id(2), name(2)],
      [undefined, name(3)],
    ]);
  });
});
