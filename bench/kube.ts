/**
 * What the Kubernetes client and its cache cost against a real API server. Goals: 1,000 reads over at most 2 connections and
 * with a fifth of the CPU that @kubernetes/client-node takes; 100 of 10,000 Pods cached when 100 are ours; 5 kB of heap per
 * cached Pod; the event loop never blocked for more than 50 ms (99th percentile) while 13,000 objects are listed.
 */
import type { Pod } from '../src/gen/kube.ts';
import { pods } from '../src/kube/resources.ts';
import { startWire } from '../test/support/faults/wire.ts';
import { type Figure, summarise } from '../tools/figures.ts';
import { inParallel, type KubeLab, measured, startKubeLab } from './support/kube-lab.ts';

export const about = 'the Kubernetes client and cache';

const GETS = 1_000;
const RUNS = 3;
const MANY = 10_000;
const FEW = 100;
const OWN = 3_000;

export async function measure(progress: (detail: string) => void): Promise<readonly Figure[]> {
  progress('starting an API server');
  const lab = await startKubeLab();
  try {
    await lab.admin.create(pods, aPod('one', 'none'));
    const reads = await compareReads(lab, progress);
    return [...reads, ...(await fillCaches(lab, progress))];
  } finally {
    await lab.close();
  }
}

interface Reads {
  readonly cpuUs: number;
  readonly ms: number;
}

async function compareReads(lab: KubeLab, progress: (detail: string) => void): Promise<readonly Figure[]> {
  const wire = await startWire(await lab.port());
  const kubeconfig = await lab.kubeconfig({ server: `https://127.0.0.1:${wire.port}` });
  const results = { ours: [] as Reads[], theirs: [] as Reads[] };
  const connections = { ours: [] as number[], theirs: [] as number[] };
  for (let round = 0; round < RUNS; round++)
    for (const who of ['ours', 'theirs'] as const) {
      progress(`${GETS} reads, ${who}, round ${round + 1} of ${RUNS}`);
      const before = wire.opened;
      results[who].push(await measured<Reads>('kube-gets', who, kubeconfig, String(GETS)));
      connections[who].push(wire.opened - before);
    }
  wire.close();
  const cpu = (who: 'ours' | 'theirs'): number[] => results[who].map((r) => r.cpuUs);
  return [
    summarise(`connections opened for ${GETS + 100} reads: ours`, connections.ours, 'count'),
    summarise(`connections opened for ${GETS + 100} reads: client-node`, connections.theirs, 'count'),
    summarise('CPU per read: ours', cpu('ours'), 'µs'),
    summarise('CPU per read: client-node', cpu('theirs'), 'µs'),
    summarise(
      'CPU per read: ours to client-node’s',
      cpu('ours').map((own, i) => own / (cpu('theirs')[i] ?? 1)),
      'times',
    ),
  ];
}

interface Sync {
  readonly ms: number;
  readonly size: number;
  readonly bytes: number;
  readonly p99: number;
  readonly worst: number;
}

async function fillCaches(lab: KubeLab, progress: (detail: string) => void): Promise<readonly Figure[]> {
  const kubeconfig = await lab.kubeconfig();
  const make = async (from: number, to: number, owner: (n: number) => string): Promise<void> => {
    const numbers = Array.from({ length: to - from }, (_, i) => from + i);
    let made = 0;
    await inParallel(numbers, 16, async (n) => {
      await lab.admin.create(pods, aPod(`pod-${n}`, owner(n)));
      if (++made % 250 === 0) progress(`Pods: ${from + made} of ${to}`);
    });
  };
  const sync = async (selector: string): Promise<readonly Sync[]> => {
    const samples: Sync[] = [];
    for (let round = 0; round < RUNS; round++) samples.push(await measured<Sync>('kube-sync', kubeconfig, selector));
    return samples;
  };
  await make(0, MANY, (n) => (n % (MANY / FEW) === 0 ? 'us' : 'others'));
  const few = await sync('owner=us');
  await make(MANY, MANY + OWN - FEW, () => 'us');
  const own = await sync('owner=us');
  await make(MANY + OWN - FEW, MANY + OWN, () => 'others');
  const all = await sync('');
  const figure = (what: string, samples: readonly Sync[], pick: (s: Sync) => number, unit: Figure['unit']): Figure =>
    summarise(what, samples.map(pick), unit);
  return [
    figure(`objects cached, ${FEW} of ${MANY} ours`, few, (s) => s.size, 'count'),
    figure(`first list, ${FEW} of ${MANY} ours`, few, (s) => s.ms, 'ms'),
    figure(`heap per cached Pod, ${OWN} ours`, own, (s) => s.bytes / 1000, 'kB'),
    figure(`first list, ${OWN} ours`, own, (s) => s.ms, 'ms'),
    figure(`first list, ${MANY + OWN} objects`, all, (s) => s.ms, 'ms'),
    figure(`event loop blocked, 99 %, ${MANY + OWN} objects`, all, (s) => s.p99, 'ms'),
    figure(`event loop blocked, at worst, ${MANY + OWN} objects`, all, (s) => s.worst, 'ms'),
  ];
}

/** About as large as a member's Pod. */
function aPod(name: string, owner: string): Pod {
  const probe = (path: string) => ({ httpGet: { path, port: 2381 }, periodSeconds: 5, failureThreshold: 3 });
  const labels = {
    owner,
    cluster: `cluster-${name}`,
    'app.kubernetes.io/name': 'etcd',
    'app.kubernetes.io/instance': name,
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels, annotations: { 'example.com/made-by': 'the benchmark' } },
    spec: {
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 65532,
        fsGroup: 65532,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      containers: [
        {
          name: 'etcd',
          image: 'quay.io/coreos/etcd:v3.6.16',
          command: ['etcd', `--name=${name}`, '--data-dir=/var/lib/etcd', '--listen-client-urls=http://0.0.0.0:2379'],
          ports: [2379, 2380, 2381].map((containerPort) => ({ name: `port-${containerPort}`, containerPort })),
          readinessProbe: probe('/readyz'),
          livenessProbe: probe('/livez'),
          volumeMounts: [{ name: 'data', mountPath: '/var/lib/etcd' }],
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        },
      ],
      volumes: [{ name: 'data', emptyDir: {} }],
    },
  };
}
