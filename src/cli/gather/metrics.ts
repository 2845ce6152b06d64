/** The metrics of members, over a forwarded port: plain HTTP, as the kubelet's probes use it. */
import { get } from 'node:http';
import { METRICS_PORT } from '../../api/names.ts';
import type { MemberFacts } from '../assess/facts.ts';
import { clockOf, type MemberMetrics, metricsOf, parseSample, type Sample } from '../assess/metrics.ts';
import type { Context } from '../context.ts';

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 8 * 1024 * 1024;

type Ports = Pick<Context, 'reach' | 'now'>;
type Asked = readonly Pick<MemberFacts, 'object' | 'pod'>[];

/** A member whose metrics cannot be read is left out. */
export async function gatherSamples({ reach, now }: Ports, members: Asked): Promise<ReadonlyMap<string, Sample>> {
  const read = await Promise.all(
    members.map(async ({ object, pod }) => {
      const { namespace = '', name = '' } = object.metadata;
      if (pod?.status?.podIP === undefined) return [];
      const way = await reach({ namespace, name }, METRICS_PORT);
      try {
        const sent = now();
        const { text, date, arrived } = await page(`http://${way.address}/metrics`, now);
        const clock = clockOf(date, sent, arrived);
        return [[name, { ...parseSample(text, now()), ...(clock && { clock }) }] as const];
      } catch {
        return [];
      } finally {
        way.close();
      }
    }),
  );
  return new Map(read.flat());
}

export async function gatherMetrics(ports: Ports, members: Asked): Promise<ReadonlyMap<string, MemberMetrics>> {
  const samples = await gatherSamples(ports, members);
  return new Map([...samples].map(([name, sample]) => [name, metricsOf(sample)]));
}

interface Page {
  readonly text: string;
  readonly date: string | undefined;
  readonly arrived: number;
}

const page = (url: string, now: () => number): Promise<Page> =>
  new Promise((resolve, reject) => {
    const request = get(url, { timeout: TIMEOUT_MS, agent: false }, (response) => {
      let text = '';
      const { date } = response.headers;
      const arrived = now();
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
        if (text.length > MAX_BYTES) request.destroy(new Error('the metrics are too large'));
      });
      response.on('end', () =>
        response.statusCode === 200 ? resolve({ text, date, arrived }) : reject(new Error('no metrics')),
      );
      response.on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error('no response')));
    request.on('error', reject);
  });
