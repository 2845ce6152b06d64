/**
 * How an edit of the spec reaches three running members: how long it takes on three real nodes, as a multiple of one Pod that was
 * deleted and comes back; and what the operator writes for it, with a real API server.
 */
import { eventually, pause } from '../test/support/servers/processes.ts';
import { startWorld } from '../test/support/servers/world.ts';
import { Ledger } from '../test/sweep/ledger.ts';
import { Rig } from '../test/sweep/rig.ts';
import { workloadCalled } from '../test/sweep/workloads.ts';
import { type Figure, summarise } from '../tools/figures.ts';
import { type Progress, REST_MS, withStage } from './support/stage.ts';

export const about = 'an edit of the spec of three running members';

const RUNS = Number(process.env['RUNS'] ?? 3);
/** Longer than the operator coalesces message-only changes of a status. */
const QUIET_MS = 25_000;
const MEMBERS = 3;

export async function measure(progress: Progress): Promise<readonly Figure[]> {
  return [...(await writes(progress)), ...(await times(progress))];
}

async function times(progress: Progress): Promise<readonly Figure[]> {
  const restarts: number[] = [];
  const rollouts: number[] = [];
  await withStage(progress, async (stage) => {
    await stage.create('db', { size: '256Mi' });
    for (let run = 0; run <= RUNS; run++) {
      progress(run === 0 ? 'warming up' : `run ${run} of ${RUNS}`);
      await pause(REST_MS);
      const restarted = await stage.healed('db', false);
      await pause(REST_MS);
      const rolledOut = await stage.edited('db', { options: { snapshotCount: 5_000 + run } }, MEMBERS);
      if (run > 0) {
        restarts.push(restarted);
        rollouts.push(rolledOut);
      }
    }
    await stage.remove('db');
  });
  return [
    summarise(
      'one Pod deleted, three voters again',
      restarts.map((ms) => ms / 1000),
      's',
    ),
    summarise(
      'one edit, three members have it',
      rollouts.map((ms) => ms / 1000),
      's',
    ),
    summarise(
      '  times one Pod',
      rollouts.map((ms, i) => ms / (restarts[i] ?? 1)),
      'times',
      { atMost: 3.5 },
    ),
  ];
}

async function writes(progress: Progress): Promise<readonly Figure[]> {
  progress('starting an API server');
  const world = await startWorld();
  const ledger = await new Ledger(world.admin).synced();
  try {
    const perMember: number[] = [];
    const conflicts: number[] = [];
    for (let run = 1; run <= RUNS; run++) {
      progress(`writes, run ${run} of ${RUNS}`);
      const rig = await Rig.build(world, ledger);
      await rig.start();
      for (const name of ['create-3', 'roll-out'] as const) {
        const { act, done } = workloadCalled(name);
        const before = rig.writes().length;
        await act(rig);
        await eventually(name, () => done(rig) || undefined, { timeoutMs: 120_000, seen: () => rig.cluster?.status });
        await pause(QUIET_MS);
        if (name === 'create-3') continue;
        const made = rig.writes().slice(before);
        perMember.push(made.length / MEMBERS);
        conflicts.push(made.filter(({ code }) => code === 409).length);
      }
      await rig.stop();
    }
    return [
      summarise('API writes for each restarted member', perMember, 'count', { atMost: 8 }),
      summarise('answered with 409', conflicts, 'count', { atMost: 0 }),
    ];
  } finally {
    ledger.stop();
    await world.stop();
  }
}
