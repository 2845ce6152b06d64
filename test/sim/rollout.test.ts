/** Edits of running clusters in worlds without other faults: they reach every member, or are taken back. */
import { describe, expect, test } from 'vitest';
import type { EtcdCluster, EtcdClusterSpec } from '../../src/api/etcd-cluster.ts';
import { etcdClusters, RESTARTED_AT_ANNOTATION, TEMPLATE_ANNOTATION } from '../../src/api/names.ts';
import { findCondition } from '../../src/domain/conditions.ts';
import { pods } from '../../src/kube/resources.ts';
import { outdatedPods } from './rollout-facts.ts';
import {
  deletedPods,
  deletePod,
  edit,
  LITTLE,
  life,
  MEMORY,
  type Patch,
  passes,
  progress,
  spec,
  starve,
  until,
} from './rollout-life.ts';
import { peace } from './run.ts';
import { groupOf, membersOf } from './world/facts.ts';
import { NAMESPACE } from './world/ground.ts';
import { CLUSTER, type World } from './world/world.ts';

const EDITS: readonly (readonly [string, EtcdCluster['spec'], Patch])[] = [
  ['options', spec(), { options: { snapshotCount: 5_000 } }],
  ['a patch version', spec(), { version: '3.6.17' }],
  ['resources', spec(), { resources: { limits: { memory: '1Gi' } } }],
  ['tolerations, with a label', spec(), { tolerations: [{ key: 'a' }], additionalMetadata: { labels: { team: 'a' } } }],
  ['options of five', spec({ replicas: 5 }), { options: { snapshotCount: 5_000 } }],
  ['options of one', spec({ replicas: 1 }), { options: { snapshotCount: 5_000 } }],
  ['options, while it grows', spec(), { replicas: 5, options: { snapshotCount: 5_000 } }],
  ['options, while it shrinks', spec(), { replicas: 1, options: { snapshotCount: 5_000 } }],
];

describe('an edit reaches every running member', () => {
  test.each(EDITS)('%s', async (_, start, patch) => {
    await life(start, async (world, judge) => {
      edit(world, patch);
      await peace(world, judge);
      expect(outdatedPods(world)).toEqual([]);
      const restarted = deletedPods(judge);
      expect(new Set(restarted).size).toBe(restarted.length); // none twice
      expect(progress(world)?.reason).toBe('Reconciled');
      expect(world.cluster?.status?.updatedMembers).toBe(world.cluster?.spec.replicas);
    });
  });

  test('members in memory are replaced one after the other', async () => {
    await life(spec({ storage: { size: '1Gi', medium: 'Memory' } }), async (world, judge) => {
      edit(world, { options: { snapshotCount: 5_000 } });
      await peace(world, judge);
      expect(outdatedPods(world)).toEqual([]);
      expect(deletedPods(judge)).toEqual([]);
      expect(judge.writes.filter((write) => write.startsWith('delete EtcdMember'))).toHaveLength(3);
    });
  });

  test('the leader restarts last, and hands over to a member that has the edit', async () => {
    await life(spec(), async (world, judge) => {
      const leader = groupOf(world)?.members.get(groupOf(world)?.leader ?? 0n)?.name;
      edit(world, { options: { snapshotCount: 5_000 } });
      await peace(world, judge);
      expect(deletedPods(judge).at(-1)).toBe(leader);
      expect(deletedPods(judge)).toHaveLength(3);
    });
  });
});

describe('no Pod is deleted for', () => {
  const unrestarted: readonly (readonly [string, Patch])[] = [
    ['labels and annotations', { additionalMetadata: { labels: { team: 'a' }, annotations: { note: 'b' } } }],
    ['the deletionPolicy', { deletionPolicy: 'Retain' }],
    ['the PodDisruptionBudget', { podDisruptionBudget: { enabled: false } }],
  ];
  test.each(unrestarted)('%s', async (_, patch) => {
    await life(
      spec(),
      async (world, judge) => {
        edit(world, patch);
        await peace(world, judge);
        expect(deletedPods(judge)).toEqual([]);
        const labels = world.ground.api.peek(pods).map(({ metadata }) => metadata.labels?.['team']);
        expect(new Set(labels)).toEqual(new Set([patch.additionalMetadata?.labels?.['team']]));
      },
      1,
    );
  });
});

const WRONG: readonly (readonly [string, Patch, Patch])[] = [
  ['an image that does not exist', { version: '3.6.99' }, { version: '3.6.16' }],
  ['a flag that etcd does not know', { extraArgs: ['--nonsense=1'] }, { extraArgs: null }],
  ['a node that does not exist', { nodeSelector: { disk: 'none' } }, { nodeSelector: null }],
];

describe('a wrong edit breaks one member only, and is taken back', () => {
  test.each(WRONG)('%s, by the user', async (_, wrong, right) => {
    await life(spec(), async (world, judge) => {
      edit(world, wrong);
      await until(world, judge, () => world.cluster?.status?.readyMembers === 2, 120_000);
      await passes(world, judge, 30_000);
      expect(new Set(deletedPods(judge)).size).toBe(1);
      edit(world, right);
      await until(world, judge, () => progress(world)?.reason === 'Reconciled', 120_000);
      await peace(world, judge);
      expect(new Set(deletedPods(judge)).size).toBe(1);
      expect(judge.writes.filter((write) => write.startsWith('delete EtcdMember'))).toEqual([]);
    });
  });

  test.each(WRONG)('%s, by the operator when the member is not ready in time', async (_, wrong, right) => {
    await life(
      spec({ progressDeadlineSeconds: 120 }),
      async (world, judge) => {
        edit(world, wrong);
        await until(world, judge, () => progress(world)?.reason === 'RolloutFailed', 600_000);
        await until(world, judge, () => world.cluster?.status?.readyMembers === 3, 120_000);
        await passes(world, judge, 600_000);
        expect(progress(world)?.reason).toBe('RolloutFailed');
        expect(world.cluster?.status?.readyMembers).toBe(3);
        expect(new Set(deletedPods(judge)).size).toBe(1);
        edit(world, right);
        await peace(world, judge);
        expect(progress(world)?.reason).toBe('Reconciled');
        expect(judge.writes.filter((write) => write.startsWith('delete EtcdMember'))).toEqual([]);
      },
      2,
    );
  });

  test('of the only member', async () => {
    await life(spec({ replicas: 1 }), async (world, judge) => {
      edit(world, { extraArgs: ['--nonsense=1'] });
      await until(world, judge, () => world.cluster?.status?.readyMembers === 0, 120_000);
      await passes(world, judge, 30_000);
      edit(world, { extraArgs: null });
      await peace(world, judge);
      expect(progress(world)?.reason).toBe('Reconciled');
    });
  });

  test('of a member in memory', async () => {
    await life(spec({ storage: { size: '1Gi', medium: 'Memory' }, replicas: 5 }), async (world, judge) => {
      edit(world, { version: '3.6.99' });
      await until(world, judge, () => world.cluster?.status?.readyMembers === 4, 120_000);
      await passes(world, judge, 1_800_000);
      expect(world.cluster?.status?.readyMembers).toBeGreaterThanOrEqual(4);
      edit(world, { version: '3.6.16' });
      await peace(world, judge);
      expect(progress(world)?.reason).toBe('Reconciled');
    });
  });
});

describe('a change of the minor', () => {
  test.each([
    ['on volumes', spec()],
    ['in memory, where it begins with a member that joins', spec({ storage: MEMORY })],
  ])('reaches every member: %s', async (_, start) => {
    await life(
      start,
      async (world, judge) => {
        edit(world, { version: '3.7.3' });
        await peace(world, judge);
        expect(outdatedPods(world)).toEqual([]);
        expect(world.cluster?.status?.clusterVersion).toBe('3.7.0');
      },
      2,
    );
  });

  test.each(WRONG)(
    'together with what takes back a wrong edit, %s: first the member runs again',
    async (_, wrong, right) => {
      await life(
        spec(),
        async (world, judge) => {
          edit(world, wrong);
          await until(world, judge, () => world.cluster?.status?.readyMembers === 2, 120_000);
          await passes(world, judge, 60_000);
          edit(world, { ...right, version: '3.7.3' });
          await until(world, judge, () => progress(world)?.reason === 'Reconciled', 300_000);
          await peace(world, judge);
          expect(world.cluster?.status?.clusterVersion).toBe('3.7.0');
        },
        2,
      );
    },
  );

  test('down that is taken back before a member was changed restarts none', async () => {
    await life(
      spec({ version: '3.7.3' }),
      async (world, judge) => {
        const enabled = (): boolean => groupOf(world)?.state.downgradeTo !== undefined;
        edit(world, { version: '3.6.16' });
        await until(world, judge, enabled, 60_000);
        edit(world, { version: '3.7.3' });
        await peace(world, judge);
        expect(deletedPods(judge)).toEqual([]);
        expect(world.cluster?.status?.clusterVersion).toBe('3.7.0');
      },
      2,
    );
  });

  test('that is not possible keeps members in memory that are replaced at their version', async () => {
    await life(
      spec({ storage: MEMORY }),
      async (world, judge) => {
        edit(world, { version: '3.7.3', extraArgs: ['--experimental-nonsense=1'] });
        const ready = () => findCondition(world.cluster?.status?.conditions, 'VersionChangeReady')?.reason;
        await until(world, judge, () => ready() === 'UnknownFlags', 60_000);
        const [replaced = ''] = membersOf(world).map((m) => m.metadata.name ?? '');
        deletePod(world, replaced);
        await passes(world, judge, 120_000);
        expect(world.cluster?.status?.readyMembers).toBe(3);
        expect(membersOf(world).map((m) => m.spec.version)).toEqual(['3.6.16', '3.6.16', '3.6.16']);
        expect(membersOf(world).map((m) => m.metadata.name)).not.toContain(replaced);
        edit(world, { extraArgs: null });
        await peace(world, judge);
        expect(world.cluster?.status?.clusterVersion).toBe('3.7.0');
      },
      2,
    );
  });
});

/** Opens at the next full minute, for a minute each day. */
function nextMinute({ ground }: World): NonNullable<EtcdClusterSpec['updateStrategy']> {
  const opens = new Date(ground.timeline.date + 60_000);
  const schedule = `${opens.getUTCMinutes()} ${opens.getUTCHours()} * * *`;
  return { maintenanceWindows: [{ schedule, duration: '1m' }] };
}

describe('a maintenance window', () => {
  test('is waited for before the data of members is hashed for another minor', async () => {
    await life(
      spec(),
      async (world, judge) => {
        let hashed: readonly number[] = [];
        const asks = judge.asks.bind(judge);
        judge.asks = (call) => {
          if (call.method === 'hashKV') hashed = [...hashed, world.ground.timeline.now];
          asks(call);
        };
        const windows = nextMinute(world);
        edit(world, { version: '3.7.3', updateStrategy: windows });
        await until(world, judge, () => progress(world)?.reason === 'WaitingForWindow', 10_000);
        expect(hashed).toEqual([]);
        await peace(world, judge);
        expect(world.cluster?.status?.clusterVersion).toBe('3.7.0');
        expect(hashed).toHaveLength(3);
      },
      2,
    );
  });

  test('that closes while a member does not become ready leaves it to its deadline', async () => {
    await life(spec({ progressDeadlineSeconds: 300 }), async (world, judge) => {
      edit(world, { extraArgs: ['--nonsense=1'], updateStrategy: nextMinute(world) });
      await until(world, judge, () => world.cluster?.status?.readyMembers === 2, 180_000);
      await until(world, judge, () => progress(world)?.reason === 'RolloutFailed', 600_000);
      await until(world, judge, () => world.cluster?.status?.readyMembers === 3, 120_000);
      expect(new Set(deletedPods(judge)).size).toBe(1);
      edit(world, { extraArgs: null });
      await peace(world, judge);
      expect(progress(world)?.reason).toBe('Reconciled');
    });
  });

  test('is not waited for by an edit that is taken back before: no member restarts', async () => {
    await life(spec(), async (world, judge) => {
      edit(world, { options: { snapshotCount: 5_000 }, updateStrategy: nextMinute(world) });
      await until(world, judge, () => progress(world)?.reason === 'WaitingForWindow', 10_000);
      edit(world, { options: null });
      await peace(world, judge);
      expect(deletedPods(judge)).toEqual([]);
      expect(progress(world)?.reason).toBe('Reconciled');
      expect(world.cluster?.status?.rollout).toEqual({});
    });
  });
});

describe('a memory limit that is too low breaks one member only, and is taken back', () => {
  const wrong: Patch = { resources: { limits: { memory: LITTLE } } };
  const patient = { updateStrategy: { minReadySeconds: 60 } };
  const starved: readonly (readonly [string, EtcdCluster['spec'], number])[] = [
    ['in memory, after it has voted', spec({ storage: MEMORY, ...patient }), 15_000],
    ['in memory, of five', spec({ storage: MEMORY, replicas: 5, ...patient }), 15_000],
    ['in memory, before it votes', spec({ storage: MEMORY, ...patient }), 30],
    ['on a volume', spec(patient), 15_000],
  ];
  const starving = (world: World) => membersOf(world).filter((m) => m.spec.resources?.limits?.['memory'] === LITTLE);
  const short = ({ cluster }: World): boolean => cluster?.status?.readyMembers === (cluster?.spec.replicas ?? 0) - 1;

  test.each(starved)('%s, by the user', async (_, start, afterMs) => {
    await life(start, async (world, judge) => {
      starve(world, afterMs);
      edit(world, wrong);
      await until(world, judge, () => short(world), 120_000);
      await passes(world, judge, 180_000);
      expect(starving(world)).toHaveLength(1);
      edit(world, { resources: null });
      await peace(world, judge);
      expect(progress(world)?.reason).toBe('Reconciled');
    });
  });

  test.each(starved)('%s, by the operator when the member is not ready in time', async (_, start, afterMs) => {
    await life({ ...start, progressDeadlineSeconds: 120 }, async (world, judge) => {
      starve(world, afterMs);
      edit(world, wrong);
      await until(world, judge, () => progress(world)?.reason === 'RolloutFailed', 900_000);
      await until(world, judge, () => world.cluster?.status?.readyMembers === world.cluster?.spec.replicas, 600_000);
      await passes(world, judge, 600_000);
      expect([progress(world)?.reason, world.cluster?.status?.readyMembers]).toEqual(['RolloutFailed', start.replicas]);
      expect(starving(world)).toEqual([]);
    });
  });
});

test('every member restarts once for another value of the annotation', async () => {
  await life(spec(), async (world, judge) => {
    const annotations = { [RESTARTED_AT_ANNOTATION]: '2026-01-01T00:00:00Z' };
    world.ground.patch(etcdClusters, { namespace: NAMESPACE, name: CLUSTER }, { metadata: { annotations } });
    await peace(world, judge);
    expect(new Set(deletedPods(judge)).size).toBe(3);
    expect(deletedPods(judge)).toHaveLength(3);
    expect(progress(world)?.reason).toBe('Reconciled');
    edit(world, { replicas: 5 });
    await peace(world, judge);
    expect(deletedPods(judge)).toHaveLength(3); // new members were started after the request
  });
});

describe('with OnDelete', () => {
  const onDelete: Partial<EtcdClusterSpec> = { updateStrategy: { type: 'OnDelete' } };
  const changed: Patch = { options: { snapshotCount: 5_000 } };

  test('no member restarts, until the strategy is changed', async () => {
    await life(
      spec(onDelete),
      async (world, judge) => {
        edit(world, changed);
        await until(world, judge, () => progress(world)?.reason === 'UpdatePending', 60_000);
        await passes(world, judge, 60_000);
        expect(deletedPods(judge)).toEqual([]);
        expect(outdatedPods(world)).toHaveLength(3);
        edit(world, { updateStrategy: { type: 'RollingUpdate' } });
        await peace(world, judge);
        expect(outdatedPods(world)).toEqual([]);
        expect(deletedPods(judge)).toHaveLength(3);
      },
      1,
    );
  });

  test.each([
    ['on volumes', spec(onDelete)],
    ['in memory', spec({ ...onDelete, storage: MEMORY })],
  ])('a Pod that a user deletes comes back with the edit: %s', async (_, start) => {
    await life(start, async (world, judge) => {
      edit(world, changed);
      await until(world, judge, () => progress(world)?.reason === 'UpdatePending', 60_000);
      for (const left of [2, 1, 0]) {
        const [next = ''] = outdatedPods(world);
        deletePod(world, next.split(' ')[0] ?? '');
        await passes(world, judge, 60_000);
        expect(outdatedPods(world)).toHaveLength(left);
        expect(world.cluster?.status?.readyMembers).toBe(3);
      }
      expect(deletedPods(judge)).toEqual([]); // by the operator
      await peace(world, judge);
    });
  });

  test('an edit that is taken back leaves nothing that a Pod would get', async () => {
    await life(spec(onDelete), async (world, judge) => {
      edit(world, changed);
      await until(world, judge, () => progress(world)?.reason === 'UpdatePending', 60_000);
      await passes(world, judge, 10_000);
      edit(world, { options: null });
      await peace(world, judge);
      expect(deletedPods(judge)).toEqual([]);
      expect(membersOf(world).map((m) => m.spec.options?.snapshotCount)).toEqual([undefined, undefined, undefined]);
    });
  });
});

test('the only member restarts after the status has said what it costs', async () => {
  await life(spec({ replicas: 1 }), async (world, judge) => {
    const warnings: (string | undefined)[] = [];
    const before = judge.before.bind(judge);
    judge.before = (write) => {
      if (write.verb === 'delete' && write.resource.kind === 'Pod') warnings.push(progress(world)?.message);
      before(write);
    };
    edit(world, { version: '3.7.3' });
    await peace(world, judge);
    expect(outdatedPods(world)).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining('clients are interrupted while the only member restarts')]);
  });
});

/** As an earlier operator made them, which gave Pods no stamp. */
function stripStamps(world: World): void {
  for (const { metadata } of world.ground.api.peek(pods)) {
    const ref = { namespace: NAMESPACE, name: metadata.name ?? '' };
    world.ground.patch(pods, ref, { metadata: { annotations: { [TEMPLATE_ANNOTATION]: null } } });
  }
}

test.each([
  ['that has recorded no rollout', null],
  ['after a rollout', {}],
])('an upgrade of the operator restarts no member %s, and the next edit each of them once', async (_, rollout) => {
  await life(
    spec(),
    async (world, judge) => {
      for (const operator of world.operators) operator.kill();
      stripStamps(world);
      world.ground.patchStatus(etcdClusters, { namespace: NAMESPACE, name: CLUSTER }, { rollout });
      world.startOperator();
      await passes(world, judge, 120_000);
      expect(deletedPods(judge)).toEqual([]);
      expect(progress(world)?.reason).toBe('Reconciled');
      edit(world, { options: { snapshotCount: 5_000 } });
      await peace(world, judge);
      expect(new Set(deletedPods(judge)).size).toBe(3);
      expect(deletedPods(judge)).toHaveLength(3);
    },
    2,
  );
});

test('a cluster that is taken over while it is suspended restarts no member before the next edit', async () => {
  await life(
    spec(),
    async (world, judge) => {
      for (const operator of world.operators) operator.kill();
      // As an earlier operator leaves it: it has not applied the last edit, and has recorded nothing of what this one records.
      const recorded = { members: null, rollout: null };
      world.ground.patchStatus(etcdClusters, { namespace: NAMESPACE, name: CLUSTER }, recorded);
      edit(world, { suspend: true, options: { snapshotCount: 7_000 } });
      world.startOperator();
      await until(
        world,
        judge,
        () => findCondition(world.cluster?.status?.conditions, 'Suspended') !== undefined,
        60_000,
      );
      edit(world, { suspend: false });
      await passes(world, judge, 120_000);
      expect(deletedPods(judge)).toEqual([]);
      expect(progress(world)?.reason).toBe('UpdatePending');
      edit(world, { options: { snapshotCount: 5_000 } });
      await peace(world, judge);
      expect(deletedPods(judge)).toHaveLength(3);
    },
    2,
  );
});
