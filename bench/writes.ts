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
import { type Workload, workloadCalled } from '../test/sweep/workloads.ts';
import { type Figure, summarise } from '../tools/figures.ts';
import { startHours } from './support/idle-hour.ts';
import { reactions } from './support/reactions.ts';

export const about = 'what the operator writes and asks';

const RUNS = 3;
/** Longer than the operator coalesces message-only changes of a status: those of a cluster repeat those of its members. */
const QUIET_MS = 25_000;
const MINUTES = Number(process.env['MINUTES'] ?? 0);

type Progress = (detail: string) => void;

export async function measure(progress: Progress): Promise<readonly Figure[]> {
  progress('starting an API server');
  const world = await startWorld();
  const ledger = await new Ledger(world.admin).synced();
  try {
    const secured = await several(world, ledger, 'create-3-mtls-auth', progress);
    await secured.last.stop();
    const { made, last } = await several(world, ledger, 'create-3', progress);
    return [
      ...creation('made', made, 26, GO),
      ...creation('made with mTLS and auth', secured.made, 39),
      ...(await atRest(world, last, progress)),
      ...(await reactions(world, ledger, progress)),
    ];
  } finally {
    ledger.stop();
    await world.stop();
  }
}

/** The figures of the Go operator. */
const GO = {
  ready: { go: '21.5-26.4 s' },
  writes: { go: '84-97' },
  conflicts: { go: '3-6' },
  added: { go: '5' },
  promoted: { go: '5' },
};

interface Made {
  readonly ms: number;
  readonly writes: readonly Passed[];
  readonly rpcs: readonly string[];
}

/** The rig of the last run is still there. */
async function several(world: World, ledger: Ledger, name: string, progress: Progress) {
  const made: Made[] = [];
  for (;;) {
    progress(`${name}, run ${made.length + 1} of ${RUNS}`);
    const rig = await Rig.build(world, ledger);
    made.push(await make(rig, workloadCalled(name)));
    if (made.length === RUNS) return { made, last: rig };
    await rig.stop();
  }
}

async function make(rig: Rig, { act, done }: Workload): Promise<Made> {
  await rig.start();
  const started = performance.now();
  await act(rig);
  await eventually('a cluster of three', () => done(rig) || undefined, {
    timeoutMs: 120_000,
    seen: () => rig.cluster?.status,
  });
  const ms = performance.now() - started;
  await pause(QUIET_MS);
  return { ms, writes: [...rig.writes()], rpcs: rig.rpcs.calls.map(({ method }) => method) };
}

function creation(name: string, made: readonly Made[], atMost: number, go?: typeof GO): readonly Figure[] {
  const conflicts = (each: Made): number => each.writes.filter(({ code }) => code === 409).length;
  const asked = (method: string) => (each: Made) => each.rpcs.filter((rpc) => rpc === method).length;
  const kind = ({ verb, resource }: Passed): string => `${verb} ${resource}`;
  const kinds = [...new Set(made.flatMap((each) => each.writes.map(kind)))].sort();
  const seconds = made.map(({ ms }) => ms / 1000);
  return [
    summarise(`${name}: three members ready`, seconds, 's', go?.ready),
    summarise(
      `${name}: API writes`,
      made.map((each) => each.writes.length),
      'count',
      { atMost, ...go?.writes },
    ),
    ...kinds.map((each) =>
      summarise(
        `  ${each}`,
        made.map((one) => one.writes.filter((w) => kind(w) === each).length),
        'count',
      ),
    ),
    summarise(`${name}: answered with 409`, made.map(conflicts), 'count', { atMost: 0, ...go?.conflicts }),
    summarise(`${name}: MemberAdd`, made.map(asked('Cluster/MemberAdd')), 'count', go?.added),
    summarise(`${name}: MemberPromote`, made.map(asked('Cluster/MemberPromote')), 'count', go?.promoted),
    summarise(
      `${name}: etcd calls in all`,
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
