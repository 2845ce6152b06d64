/** A plan is a workload and one fault. Its name describes it completely, so that a failure can be replayed from the name. */
import type { Match } from '../support/faults/proxy.ts';
import { eventually } from '../support/servers/processes.ts';
import { WATCHED } from './ledger.ts';
import { CHANGES, type Rig } from './rig.ts';
import { type Workload, workloadCalled } from './workloads.ts';

/** What a run without faults did. */
export interface Recorded {
  /** `create pods`, `patch etcdclusters/status`, …, in order. */
  readonly writes: readonly string[];
  readonly rpcs: readonly string[];
}

export interface Plan {
  readonly name: string;
  readonly workload: Workload;
  /** Installs the fault; `crash` kills the operator. Resolves to a function that reports whether the fault has happened yet. */
  readonly arrange: (rig: Rig, crash: () => Promise<void>) => Arranged | Promise<Arranged>;
  /** The share of a turn that it takes. */
  readonly weight: number;
  /** A killed operator is replaced, and the new one has ten seconds. */
  readonly kills: boolean;
  /** How far the operator's view may lag behind: it may still write its status this much later. */
  readonly lagMs: number;
}

type Arranged = () => boolean;

/** A plan that waits for half a minute again and again leaves the machine to others. */
const WAITING = 0.25;
const LOST_MS = 2_000;
const COALESCED_MS = 1_000;
export const DELAYS_S = [2, 8, 30] as const;

const plural = WATCHED.map((kind) => kind.plural);
const slug = (call: string): string => call.replace('/', '.').replace(' ', '-');
const rpcName = (method: string): string => method.split('/')[1] ?? '';

/** The first, second, … of each, so that a plan means the same call in every run, however calls of others interleave. */
const numbered = (calls: readonly string[]): readonly string[] =>
  calls.map((call, i) => `${slug(call)}-${calls.slice(0, i + 1).filter((each) => each === call).length}`);

const rpcsOf = (recorded: Recorded) => numbered(recorded.rpcs.map((method) => `rpc-${rpcName(method)}`));

export const killPlans = ({ name }: Workload, recorded: Recorded): readonly string[] =>
  [...numbered(recorded.writes), ...rpcsOf(recorded)].flatMap((call) => [
    `${name}/kill-before-${call}`,
    `${name}/kill-after-${call}`,
  ]);
export const answerPlans = ({ name }: Workload, recorded: Recorded): readonly string[] => [
  ...numbered(recorded.writes).flatMap((call) =>
    ['409', '429', '500', 'hang'].map((what) => `${name}/${what}-${call}`),
  ),
  ...rpcsOf(recorded).map((call) => `${name}/unanswered-${call}`),
];
export const latePlans = ({ name }: Workload): readonly string[] =>
  plural.flatMap((kind) => DELAYS_S.map((seconds) => `${name}/late-${kind}-${seconds}s`));
export const gapPlans = ({ name }: Workload): readonly string[] =>
  plural.flatMap((kind) => [`${name}/coalesced-${kind}`, `${name}/lost-${kind}`]);

const unslug = (text: string): Match & { readonly nth: number } => {
  const [, verb, resource = '', nth] = /^(create|patch|update|delete)-([a-z.]+)-(\d+)$/.exec(text) ?? [];
  if (verb === undefined) throw new Error(`"${text}" does not name a call`);
  return { verb: verb as NonNullable<Match['verb']>, resource: resource.replace('.', '/'), nth: Number(nth) };
};

export function planCalled(name: string): Plan {
  const [workload = '', fault = ''] = name.split('/');
  const plan = { name, workload: workloadCalled(workload), kills: false, lagMs: 0, weight: 1 };
  const [, when, rest = ''] = /^kill-(before|after)-(.+)$/.exec(fault) ?? [];
  if (when === 'before' || when === 'after')
    return { ...plan, kills: true, arrange: (rig, crash) => arrangeKill(rig, when, rest, crash) };
  const [, what = '', about = ''] = /^(late|coalesced|lost|409|429|500|hang|unanswered)-(.+)$/.exec(fault) ?? [];
  if (what === 'late' || what === 'coalesced' || what === 'lost') {
    const [, kind = about, seconds = '0'] = /^(.+)-(\d+)s$/.exec(about) ?? [];
    if (!plural.includes(kind)) throw new Error(`"${kind}" is not watched; use one of ${plural.join(', ')}`);
    const ms = { late: Number(seconds) * 1000, coalesced: COALESCED_MS, lost: LOST_MS }[what];
    return {
      ...plan,
      lagMs: ms,
      weight: ms < 10_000 ? 1 : WAITING,
      arrange: (rig) => arrangeWatch(rig, kind, what, ms),
    };
  }
  if (what === 'unanswered') return { ...plan, arrange: (rig) => arrangeSilence(rig, about) };
  if (what === '') throw new Error(`"${fault}" is not a known fault`);
  return { ...plan, weight: what === 'hang' ? WAITING : 1, arrange: (rig) => arrangeAnswer(rig, what, about) };
}

function arrangeKill(rig: Rig, when: 'before' | 'after', call: string, crash: () => Promise<void>): Arranged {
  let hit = false;
  const run = async (): Promise<void> => {
    hit = true;
    await crash();
  };
  const rpc = /^rpc-(\w+)-(\d+)$/.exec(call);
  rig.arranged(
    rpc
      ? rig.rpcs.add({ method: methodCalled(rpc[1] ?? ''), nth: Number(rpc[2]), fault: { do: when, crash: run } })
      : rig.proxy.fault({ ...unslug(call), write: true }, { do: 'interrupt', when, run }),
  );
  return () => hit;
}

const methodCalled = (name: string): string => {
  const found = CHANGES.find((method) => rpcName(method) === name);
  if (found === undefined) throw new Error(`"${name}" is not a call that changes etcd`);
  return found;
};

/** Carried out by etcd, and the operator never receives the response. */
function arrangeSilence(rig: Rig, call: string): Arranged {
  const [, name = '', nth] = /^rpc-(\w+)-(\d+)$/.exec(call) ?? [];
  const method = methodCalled(name);
  const before = rig.rpcs.calls.length;
  rig.arranged(rig.rpcs.add({ method, nth: Number(nth), fault: { do: 'swallow' } }));
  return () => rig.rpcs.calls.slice(before).filter((each) => each.method === method).length >= Number(nth);
}

function arrangeAnswer(rig: Rig, what: string, call: string): Arranged {
  const match = { ...unslug(call), write: true as const };
  const before = rig.writes().length;
  const answer = { do: 'answer', code: Number(what), ...(what === '429' && { retryAfterSeconds: 1 }) } as const;
  rig.arranged(rig.proxy.fault(match, what === 'hang' ? { do: 'hang' } : answer));
  const since = () => rig.writes().slice(before);
  return () => since().filter((c) => c.verb === match.verb && c.resource === match.resource).length >= match.nth;
}

/** The operator has observed everything so far; from now on, its watch is faulty. */
async function arrangeWatch(
  rig: Rig,
  resource: string,
  what: 'late' | 'coalesced' | 'lost',
  ms: number,
): Promise<Arranged> {
  const once = what === 'lost' ? { nth: 1 } : {};
  const remove = rig.proxy.fault({ verb: 'watch', resource, ...once }, { do: 'watch', how: { is: what, ms } });
  rig.arranged(async () => {
    remove();
    await watchAgain(rig);
  });
  await watchAgain(rig);
  return () => true;
}

async function watchAgain(rig: Rig): Promise<void> {
  const before = rig.proxy.calls.length;
  rig.proxy.cut();
  const again = (kind: string): boolean =>
    rig.proxy.calls.slice(before).some((c) => c.verb === 'watch' && c.resource === kind && c.code === 200);
  await eventually('every kind to be watched again', () => plural.every(again) || undefined);
}
