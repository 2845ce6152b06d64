/**
 * Many clusters at once: memory and processor time while idle, how fast clusters are created, a restart, and whether
 * hanging clusters slow others down. Pods and etcd members are scripted, the API server is real.
 * `CLUSTERS=5000` grows to that number (and needs `ulimit -n 20000`), `MINUTES=6` measures an idle operator's processor time for that long.
 */
import { pods } from '../src/kube/resources.ts';
import { eventually, pause } from '../test/support/servers/processes.ts';
import { type Figure, type Goal, summarise } from '../tools/figures.ts';
import { isolation, oneMember } from './support/isolation.ts';
import { NAMESPACE, ScaleRig } from './support/scale-rig.ts';

export const about = 'a thousand clusters, scripted';

const MOST = Number(process.env['CLUSTERS'] ?? 1_000);
const MINUTES = Number(process.env['MINUTES'] ?? 0);
const FEW = Math.min(100, MOST);
const SOME = Math.min(200, MOST);
const THOUSAND = Math.min(1_000, MOST);
const IDLE_MS = 20_000;
/** Every member is probed at this interval. */
const ROUND_SECONDS = 300;

const MEMORY: Readonly<Record<number, Goal>> = {
  100: { atMost: 110, go: '80 MiB' },
  1_000: { atMost: 180, go: '186 MiB' },
  5_000: { atMost: 450, go: '~650 MiB' },
};

type Progress = (detail: string) => void;

export async function measure(progress: Progress): Promise<readonly Figure[]> {
  progress('starting an API server');
  const rig = await ScaleRig.start();
  const lags: number[] = [];
  const figures: Figure[] = [];
  const lagged = async (): Promise<void> => void lags.push(await rig.lag());
  try {
    await rig.grow(FEW, progress);
    await lagged();
    figures.push(await memory(rig, progress));
    if (SOME > FEW) await rig.grow(SOME, progress);
    figures.push(...(await isolation(rig, progress)));
    await lagged();
    if (THOUSAND > SOME) {
      figures.push(...(await burst(rig, THOUSAND - SOME, progress)));
      await lagged();
      figures.push(await memory(rig, progress));
    }
    const idle = await idleShare(rig, progress);
    const round = await restart(rig, progress, figures);
    await lagged();
    const share = MINUTES > 0 ? idle : idle + (100 * round) / ROUND_SECONDS;
    const what = `processor, ${rig.clusters} idle${MINUTES > 0 ? '' : ', a round every five minutes included'}`;
    figures.push(summarise(what, [share], '%', { atMost: 5, go: '43 %' }));
    figures.push(late(rig, lags));
    if (MOST > THOUSAND) {
      for (let more = 2 * THOUSAND; more < MOST; more += THOUSAND) await rig.grow(more, progress);
      await rig.grow(MOST, progress);
      await lagged();
      figures.push(await memory(rig, progress), late(rig, lags));
    }
    return figures;
  } finally {
    await rig.stop();
  }
}

/** The worst of all samples so far. */
const late = ({ clusters }: ScaleRig, lags: readonly number[]): Figure =>
  summarise(`event loop late, 99 %, up to ${clusters}`, [Math.max(...lags)], 'ms', { atMost: 50 });

const MADE = { atLeast: 8, go: '~4' };

/** Counts do not depend on how busy the machine is otherwise. */
async function burst(rig: ScaleRig, more: number, progress: Progress): Promise<readonly Figure[]> {
  const [cpu, calls] = [rig.cpuSeconds, rig.etcd.calls];
  const seconds = await rig.grow(rig.clusters + more, progress);
  return [
    summarise(`clusters created per second, ${more} at once`, [more / seconds], 'times', MADE),
    summarise('  processor time of the operator for each', [(1000 * (rig.cpuSeconds - cpu)) / more], 'ms'),
    summarise('  etcd calls for each', [(rig.etcd.calls - calls) / more], 'count'),
  ];
}

async function memory(rig: ScaleRig, progress: Progress, when = ''): Promise<Figure> {
  progress(`the memory of an operator with ${rig.clusters} idle clusters`);
  await pause(IDLE_MS);
  const samples: number[] = [];
  for (let n = 0; n < 5; n++) {
    samples.push(rig.residentMiB);
    await pause(1_000);
  }
  return summarise(`memory, ${rig.clusters} idle${when}`, samples, 'MiB', MEMORY[rig.clusters]);
}

/** In per cent of a core. */
async function idleShare(rig: ScaleRig, progress: Progress): Promise<number> {
  progress(`the processor time of an operator with ${rig.clusters} idle clusters`);
  const [started, before] = [performance.now(), rig.cpuSeconds];
  await pause(MINUTES > 0 ? MINUTES * 60_000 : IDLE_MS);
  return (100 * (rig.cpuSeconds - before)) / ((performance.now() - started) / 1000);
}

/** Resolves to the processor time of one reconcile of all clusters, the start of the process included. */
async function restart(rig: ScaleRig, progress: Progress, figures: Figure[]): Promise<number> {
  progress(`a restart with ${rig.clusters} clusters`);
  await rig.kill();
  const lost = await oneMember(rig, rig.clusters - 1);
  await rig.admin.delete(pods, { namespace: NAMESPACE, name: lost.name }, { uid: lost.uid });
  const healed = new Promise<number>((resolve) => {
    const off = rig.kubelet.on((key, is) => {
      if (key !== `${NAMESPACE}/${lost.name}` || is !== 'created') return;
      off();
      resolve(performance.now());
    });
  });
  rig.etcd.turn();
  const launched = performance.now();
  const held = await rig.restart();
  await eventually('every cluster to be reconciled', () => rig.etcd.listed.size === rig.clusters || undefined, {
    timeoutMs: 120_000,
    everyMs: 20,
    seen: () => rig.etcd.listed.size,
  });
  const verified = Math.max(...rig.etcd.listed.values());
  const seconds = (at: number): readonly number[] => [Math.max(0, at - held) / 1000];
  figures.push(
    summarise('restart: until the Lease is held', [(held - launched) / 1000], 's'),
    summarise(`restart: all ${rig.clusters} verified`, seconds(verified), 's', { atMost: 5, go: '12.8 s' }),
    summarise('restart: first fault handled', seconds(await healed), 's', { atMost: 2, go: '≤ 12.8 s' }),
  );
  await rig.allReady(60_000);
  const cpu = rig.cpuSeconds;
  figures.push(await memory(rig, progress, ' after a restart'));
  return cpu;
}
