/**
 * What the operator requests from the API server and from etcd, with both of them real: to create a cluster of three members, while
 * idle, and while clients write; and how soon it reacts to a change. `MINUTES=11` also measures for that long an
 * operator that runs as a process: without it, the hours of idling are those of a clock that is advanced.
 */
import type { Passed } from '../test/support/faults/proxy.ts';
import { eventually, pause } from '../test/support/servers/processes.ts';
import { startWorld, type World } from '../test/support/servers/world.ts';
import { Client } from '../test/sweep/client.ts';
import { Ledger } from '../test/sweep/ledger.ts';
import { Rig } from '../test/sweep/rig.ts';
import { type Figure, summarise } from '../tools/figures.ts';
import { startHours } from './support/idle-hour.ts';
import { reactions } from './support/reactions.ts';

export const about = 'what the operator writes and asks';

const RUNS = 3;
/** Longer than the operator coalesces message-only changes of a status. */
const QUIET_MS = 35_000;
const MINUTES = Number(process.env['MINUTES'] ?? 0);

type Progress = (detail: string) => void;

export async function measure(progress: Progress): Promise<readonly Figure[]> {
  progress('starting an API server');
  const world = await startWorld();
  const ledger = await new Ledger(world.admin).synced();
  try {
    const made: Made[] = [];
    for (let run = 1; run < RUNS; run++) {
      progress(`a cluster of three, run ${run} of ${RUNS}`);
      const rig = await Rig.build(world, ledger);
      made.push(await make(rig));
      await rig.stop();
    }
    progress(`a cluster of three, run ${RUNS} of ${RUNS}`);
    const rig = await Rig.build(world, ledger);
    made.push(await make(rig));
    return [...creation(made), ...(await atRest(world, rig, progress)), ...(await reactions(world, ledger, progress))];
  } finally {
    ledger.stop();
    await world.stop();
  }
}

interface Made {
  readonly ms: number;
  readonly writes: readonly Passed[];
  readonly rpcs: readonly string[];
}

async function make(rig: Rig): Promise<Made> {
  await rig.start();
  const started = performance.now();
  await rig.createCluster({ replicas: 3 });
  await eventually('a cluster of three', () => isDone(rig) || undefined, {
    timeoutMs: 120_000,
    seen: () => rig.cluster?.status,
  });
  const ms = performance.now() - started;
  await pause(QUIET_MS);
  return { ms, writes: [...rig.writes()], rpcs: rig.rpcs.calls.map(({ method }) => method) };
}

function isDone({ cluster }: Rig): boolean {
  const statusOf = (type: string) => cluster?.status?.conditions?.find((c) => c.type === type)?.status;
  return statusOf('Available') === 'True' && statusOf('Progressing') === 'False' && cluster?.status?.readyMembers === 3;
}

function creation(made: readonly Made[]): readonly Figure[] {
  const conflicts = ({ writes }: Made): number => writes.filter(({ code }) => code === 409).length;
  const asked = (method: string) => (each: Made) => each.rpcs.filter((rpc) => rpc === method).length;
  const kind = ({ verb, resource }: Passed): string => `${verb} ${resource}`;
  const kinds = [...new Set(made.flatMap(({ writes }) => writes.map(kind)))].sort();
  return [
    summarise(
      'made: three members ready',
      made.map(({ ms }) => ms / 1000),
      's',
      { go: '21.5-26.4 s' },
    ),
    summarise(
      'made: API writes',
      made.map(({ writes }) => writes.length),
      'count',
      { atMost: 29, go: '84-97' },
    ),
    ...kinds.map((name) =>
      summarise(
        `  ${name}`,
        made.map(({ writes }) => writes.filter((w) => kind(w) === name).length),
        'count',
      ),
    ),
    summarise('made: answered with 409', made.map(conflicts), 'count', { atMost: 0, go: '3-6' }),
    summarise('made: MemberAdd', made.map(asked('Cluster/MemberAdd')), 'count', { go: '5' }),
    summarise('made: MemberPromote', made.map(asked('Cluster/MemberPromote')), 'count', { go: '5' }),
    summarise(
      'made: etcd calls in all',
      made.map(({ rpcs }) => rpcs.length),
      'count',
    ),
  ];
}

/** Stops the rig's operator: another one reconciles its cluster here. */
async function atRest(world: World, rig: Rig, progress: Progress): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  if (MINUTES > 0) figures.push(...(await minutes(rig, progress)));
  await rig.kill();
  progress('an hour at rest');
  const hours = await startHours(rig.proxy.identity, rig.namespace);
  try {
    const counted = counter(rig);
    await hours.hour();
    figures.push(...counted('an hour at rest', 1));
    progress('an hour while clients write');
    const client = new Client(rig);
    const busy = counter(rig);
    await hours.hour();
    figures.push(...busy('an hour while clients write', 1));
    const { acknowledged, lost } = await client.end();
    if (acknowledged === 0 || lost.length > 0)
      throw new Error(`of ${acknowledged} writes of a client, ${lost.length} are lost`);
    return figures;
  } finally {
    await hours.stop();
    await world.kubelet.abandon(rig.namespace);
  }
}

async function minutes(rig: Rig, progress: Progress): Promise<readonly Figure[]> {
  const client = new Client(rig);
  const counted = counter(rig);
  for (let minute = 1; minute <= MINUTES; minute++) {
    progress(`minute ${minute} of ${MINUTES}`);
    await pause(60_000);
  }
  const figures = counted(`${MINUTES} minutes of a process, times ${Math.round(60 / MINUTES)}`, 60 / MINUTES);
  await client.end();
  return figures;
}

/** The requests from now on. */
function counter(rig: Rig): (when: string, times: number) => readonly Figure[] {
  const [writes, calls, opened] = [rig.writes().length, rig.rpcs.calls.length, rig.rpcs.opened];
  return (when, times) => {
    const since = rig.writes().slice(writes);
    for (const { verb, resource, path } of since)
      process.stderr.write(`superfluous, in ${when}: ${verb} ${resource} ${path}\n`);
    return [
      summarise(`${when}: API writes`, [since.length * times], 'count', { atMost: 0, go: '240' }),
      summarise(`${when}: etcd connections`, [(rig.rpcs.opened - opened) * times], 'count', { atMost: 3, go: '1050' }),
      summarise(`${when}: etcd calls`, [(rig.rpcs.calls.length - calls) * times], 'count', { atMost: 90, go: '480' }),
    ];
  };
}
