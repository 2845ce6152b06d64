/** How a kubelet expands the command of a container, and how etcd parses its flags. */
import type { EtcdPortName } from '../../../src/api/names.ts';
import { STATE_VARIABLE } from '../../../src/domain/agent-task.ts';
import type { Container, Pod } from '../../../src/gen/kube.ts';

export interface EtcdFlags {
  readonly name: string;
  readonly peerURL: string;
  readonly initialCluster: string;
  readonly state: 'new' | 'existing';
  readonly token: string;
  readonly maxLearners: number | undefined;
  readonly quotaBytes: number | undefined;
  readonly dataDir: string;
  /** Ports with TLS, and whether they verify the certificates of clients. */
  readonly tls: Readonly<Record<EtcdPortName, { readonly serves: boolean; readonly verifies: boolean }>>;
  /** Peers use self-signed certificates. */
  readonly peerAutoTls: boolean;
}

/** The flags, or the error with which etcd exits with code 2. */
export type Parsed = EtcdFlags | { readonly refused: string };

/** Variables are resolved at every start of the container, as a kubelet does. */
function environment(pod: Pod, { env = [] }: Container): ReadonlyMap<string, string> {
  return new Map(
    env.map(({ name, value, valueFrom }) => {
      const path = valueFrom?.fieldRef?.fieldPath ?? '';
      const annotation = /^metadata\.annotations\['(.+)'\]$/.exec(path)?.[1];
      if (annotation !== undefined) return [name, pod.metadata.annotations?.[annotation] ?? ''];
      if (path !== '') throw new Error(`the model of the kubelet does not support the field ${path}`);
      return [name, value ?? ''];
    }),
  );
}

/** Whether the restore may still run. */
export function mayRestore(pod: Pod): boolean {
  const restore = pod.spec?.initContainers?.find(({ name }) => name === 'restore');
  return restore !== undefined && environment(pod, restore).get(STATE_VARIABLE) !== 'existing';
}

function commandOf(pod: Pod, container: Container): readonly string[] {
  const variables = environment(pod, container);
  const expand = (text: string): string =>
    text.replace(/\$\(([A-Za-z0-9_]+)\)/g, (whole, name: string) => variables.get(name) ?? whole);
  return [...(container.command ?? []), ...(container.args ?? [])].map(expand);
}

const KNOWN = [
  'name',
  'data-dir',
  'listen-peer-urls',
  'listen-client-urls',
  'advertise-client-urls',
  'initial-advertise-peer-urls',
  'initial-cluster',
  'initial-cluster-token',
  'initial-cluster-state',
  'listen-metrics-urls',
  'quota-backend-bytes',
  'auto-compaction-mode',
  'auto-compaction-retention',
  'snapshot-count',
  'max-learners',
  'feature-gates',
  'corrupt-check-time',
  'experimental-initial-corrupt-check',
  'experimental-compact-hash-check-enabled',
  'peer-cert-allowed-hostname',
  'peer-auto-tls',
  ...['cert-file', 'key-file', 'trusted-ca-file', 'client-cert-auth'].flatMap((flag) => [flag, `peer-${flag}`]),
];
const FROM_3_6 = ['max-learners', 'feature-gates', 'corrupt-check-time'];
const UNTIL_3_6 = ['experimental-initial-corrupt-check', 'experimental-compact-hash-check-enabled'];

const isKnown = (flag: string, minor: number): boolean =>
  KNOWN.includes(flag) && !(minor < 6 && FROM_3_6.includes(flag)) && !(minor > 6 && UNTIL_3_6.includes(flag));

export const versionOf = (pod: Pod): string =>
  /:v(\d+\.\d+\.\d+)/.exec(pod.spec?.containers[0]?.image ?? '')?.[1] ?? '';

/** Versions whose image the registry has. */
export const IMAGES = ['3.5.33', '3.5.35', '3.6.14', '3.6.16', '3.6.17', '3.7.1', '3.7.3'];
export const isPulled = (pod: Pod): boolean => IMAGES.includes(versionOf(pod));

export function parseCommand(pod: Pod): Parsed {
  const container = pod.spec?.containers[0];
  const [program, ...args] = container ? commandOf(pod, container) : [];
  if (program !== 'etcd') return { refused: `exec: "${program}": executable file not found in $PATH` };
  const minor = Number(versionOf(pod).split('.')[1]);
  const flags = new Map<string, string>();
  for (const arg of args) {
    const [, flag = '', value = 'true'] = /^--([a-z-]+)(?:=(.*))?$/.exec(arg) ?? [];
    if (!isKnown(flag, minor)) return { refused: `flag provided but not defined: ${arg}` };
    flags.set(flag, value);
  }
  const state = flags.get('initial-cluster-state');
  if (state !== 'new' && state !== 'existing')
    return { refused: `invalid value "${state}" for -initial-cluster-state` };
  const needed = (flag: string): string => flags.get(flag) ?? '';
  return {
    state,
    name: needed('name'),
    peerURL: needed('initial-advertise-peer-urls'),
    initialCluster: needed('initial-cluster'),
    token: needed('initial-cluster-token'),
    dataDir: needed('data-dir'),
    tls: {
      client: { serves: flags.has('cert-file'), verifies: flags.get('client-cert-auth') === 'true' },
      peer: { serves: flags.has('peer-cert-file'), verifies: flags.get('peer-client-cert-auth') === 'true' },
    },
    peerAutoTls: flags.has('peer-auto-tls'),
    maxLearners: flags.has('max-learners') ? Number(flags.get('max-learners')) : undefined,
    quotaBytes: Number(flags.get('quota-backend-bytes') ?? 0) || undefined,
  };
}
