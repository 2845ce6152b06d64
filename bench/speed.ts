/**
 * How fast clusters are created, scaled up and repaired on three real nodes, through the chart: as multiples of what one etcd takes there,
 * from a Pod with a member's own spec to Ready, measured in the same run: with data in memory, and with a volume, which is
 * provisioned when the Pod is scheduled.
 */
import { loadavg } from 'node:os';
import { pause } from '../test/support/servers/processes.ts';
import { type Figure, summarise } from '../tools/figures.ts';
import { type Progress, REST_MS, type Stage, withStage } from './support/stage.ts';

export const about = 'clusters on three real nodes';

const RUNS = Number(process.env['RUNS'] ?? 3);
export const measure = (progress: Progress): Promise<readonly Figure[]> =>
  withStage(progress, (stage) => compare(stage, progress));

interface Times {
  readonly created: number;
  readonly single: number;
  readonly grown: number;
  readonly healed: number;
}

const MEDIA = [
  {
    name: 'in memory',
    storage: { size: '256Mi', medium: 'Memory' },
    go: { created: '34 s', grown: '27 s', healed: '15 s' },
  },
  { name: 'with volumes', storage: { size: '256Mi' }, go: { created: '31 s', grown: '22 s', healed: '11 s' } },
] as const;
type Medium = (typeof MEDIA)[number];

async function compare(stage: Stage, progress: Progress): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const [i, medium] of MEDIA.entries()) {
    const runs: Times[] = [];
    const loads: number[] = [];
    for (let run = 0; run <= RUNS; run++) {
      progress(`${medium.name}, ${run === 0 ? 'warming up' : `run ${run} of ${RUNS}`}`);
      const times = await timesOf(stage, `db${i}${run}`, medium.storage);
      if (run > 0) runs.push(times);
      loads.push(loadavg()[0] ?? 0);
    }
    figures.push(...figuresOf(medium, runs, loads));
  }
  return figures;
}

function figuresOf({ name, go }: Medium, runs: readonly Times[], loads: readonly number[]): readonly Figure[] {
  const both = (what: string, pick: (t: Times) => number, goTook: string, atMost?: number): readonly Figure[] => [
    summarise(
      `${name}: ${what}`,
      runs.map((t) => pick(t) / 1000),
      's',
      { go: goTook },
    ),
    summarise(
      '  times one etcd',
      runs.map((t) => pick(t) / t.single),
      'times',
      atMost === undefined ? undefined : { atMost },
    ),
  ];
  return [
    summarise(`${name}: load average`, loads, 'times'),
    summarise(
      `${name}: one etcd, from Pod to Ready`,
      runs.map((t) => t.single / 1000),
      's',
    ),
    ...both('three voters from nothing', (t) => t.created, go.created, 2.2),
    ...both('from three to five', (t) => t.grown, go.grown, 2),
    // With a volume, the Pod comes back under its name when the old one is gone.
    ...both('one Pod deleted, three voters again', (t) => t.healed, go.healed, name === 'in memory' ? 2 : undefined),
  ];
}

async function timesOf(stage: Stage, name: string, storage: Medium['storage']): Promise<Times> {
  const created = await stage.create(name, storage);
  const single = await stage.single(name);
  await pause(REST_MS);
  const grown = await stage.edited(name, { replicas: 5 }, 5);
  await stage.edited(name, { replicas: 3 }, 3);
  await pause(REST_MS);
  const healed = await stage.healed(name, 'medium' in storage);
  await stage.remove(name);
  return { created, single, grown, healed };
}
