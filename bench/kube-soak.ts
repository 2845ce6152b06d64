/**
 * Whether memory leaks: an operator's client, cache and queue under churn, with a connection
 * that breaks every second. Goal: the heap grows by less than 5 %. Ten minutes when run by name, else one.
 */
import { startFaultProxy } from '../test/support/faults/proxy.ts';
import { type Figure, summarise } from '../tools/figures.ts';
import { measured, startKubeLab } from './support/kube-lab.ts';

export const about = 'the heap under churn and broken connections';

export interface Soak {
  readonly samples: readonly number[];
  readonly passes: number;
  readonly failures: number;
}

const minutes = process.argv.includes('kube-soak') ? 10 : 1;

export async function measure(progress: (detail: string) => void): Promise<readonly Figure[]> {
  progress(`${minutes} min`);
  const soak = await soakFor(minutes * 60_000);
  const mib = soak.samples.map((bytes) => bytes / 1024 ** 2);
  return [
    summarise('heap after GC', mib, 'MiB'),
    summarise('growth of the heap', [growth(soak.samples)], '%'),
    summarise('passes', [soak.passes], 'count'),
    summarise('calls that failed', [soak.failures], 'count'),
  ];
}

/** Of the last third against the second: the first is warm-up. */
export function growth(samples: readonly number[]): number {
  const third = Math.floor(samples.length / 3);
  const median = (part: readonly number[]): number => part.toSorted((a, b) => a - b)[Math.floor(part.length / 2)] ?? 0;
  const [before, after] = [median(samples.slice(third, -third)), median(samples.slice(-third))];
  return (after / before - 1) * 100;
}

export async function soakFor(ms: number): Promise<Soak> {
  const lab = await startKubeLab();
  const proxy = await startFaultProxy(await lab.admin.transport.identity());
  const cutting = setInterval(() => proxy.cut(), 1_000);
  try {
    return await measured<Soak>('kube-churn', await lab.kubeconfig(proxy.identity), String(ms));
  } finally {
    clearInterval(cutting);
    await proxy.close();
    await lab.close();
  }
}
