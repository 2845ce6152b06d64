/** The command line of the operator: flags and environment variables of earlier versions keep working. */
import { Command, CommanderError, Option } from 'commander';
import { USER } from '../api/security.ts';
import { OPEN, type Tenancy } from '../domain/tenancy.ts';
import { isObject } from '../lib/merge-patch.ts';

export type Flags = Readonly<ReturnType<typeof parseFlags>>;

/** The message and the exit code for an invalid command line. */
export class Usage extends Error {
  override readonly name = 'Usage';
  readonly exitCode: number;
  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

type Env = Readonly<Record<string, string | undefined>>;

const boolFor =
  (flag: string) =>
  (value: string): boolean => {
    if (['true', '1', 't', 'TRUE', 'True'].includes(value)) return true;
    if (['false', '0', 'f', 'FALSE', 'False'].includes(value)) return false;
    throw new Usage(`${flag} must be true or false, not ${JSON.stringify(value)}`, 2);
  };

const secondsFor =
  (flag: string) =>
  (value: string): number => {
    if (/^[1-9]\d{0,6}$/.test(value)) return Number(value);
    throw new Usage(`${flag} must be a number of seconds, not ${JSON.stringify(value)}`, 2);
  };
const numberFor =
  (flag: string) =>
  (value: string): number => {
    if (/^\d{1,6}$/.test(value)) return Number(value);
    throw new Usage(`${flag} must be a number, not ${JSON.stringify(value)}`, 2);
  };
const perHour = numberFor('--replacements-per-hour');
const rollingClusters = numberFor('--max-rolling-clusters');
/** With 0, every EtcdDefrag would wait for ever. */
const atOnce = (value: string): number => {
  if (/^[1-9]\d{0,5}$/.test(value)) return Number(value);
  throw new Usage(`--defragmentations-at-once must be a number above 0, not ${JSON.stringify(value)}`, 2);
};
/** No Pod of the operator may run as root: 0 is refused. */
const podUser = (value: string): number | 'none' => {
  if (value === 'none') return value;
  if (/^[1-9]\d{0,8}$/.test(value)) return Number(value);
  throw new Usage(`--pod-user must be a number above 0 or none, not ${JSON.stringify(value)}`, 2);
};
const clusterScoped = boolFor('--cluster-scoped');
const nodeSeconds = secondsFor('--node-lost-after');
const graceSeconds = secondsFor('--rotation-grace');
/** A kubelet syncs the Secrets of a Pod once a minute, and its cache may be another minute old. */
const GRACE_SECONDS = '120';

/** Go programs accept one dash as well as two. */
const twoDashes = (arg: string): string => (/^-[a-z][a-z-]+(=|$)/.test(arg) ? `-${arg}` : arg);

const BOOLEANS = ['--leader-elect', '--observe-only', '--cluster-scoped', '--zap-devel'];
/** `--leader-elect` alone is true; a value needs the equals sign, so that it never swallows the next flag. */
const bareBoolean = (arg: string): string => (BOOLEANS.includes(arg) ? `${arg}=true` : arg);

/** Flags of the Go operator's logger. Deployments that users wrote have them: they are accepted, and only the level has an effect. */
const ZAP = ['devel', 'encoder', 'log-level', 'stacktrace-level', 'time-encoding'];
const takeOverFlags = [
  ...ZAP.map((name) => new Option(`--zap-${name} <value>`).hideHelp()),
  new Option(
    '--obsolete-permissions <name>',
    'delete the roles and role bindings of this name once the Lease is held: those of the Go operator, which an upgrade keeps until then; env OBSOLETE_PERMISSIONS',
  ),
];

/** Its levels are also numbers, of which 1 is debug; `panic` is the highest one. */
function levelOf(zap: string | undefined): string {
  if (zap === undefined) return 'info';
  if (zap === 'debug' || /^[1-9]\d*$/.test(zap)) return 'debug';
  return zap === 'error' || zap === 'panic' ? 'error' : 'info';
}

const list = (value: string): readonly string[] =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

/** Times and numbers of the administrator. */
const LIMITS = [
  new Option(
    '--node-lost-after <seconds>',
    'replace a member when its node has been NotReady for this long; env NODE_LOST_AFTER',
  ).argParser(nodeSeconds),
  new Option(
    '--rotation-grace <seconds>',
    'during a CA rotation, how long a changed Secret takes to reach the Pods that mount it; env ROTATION_GRACE',
  ).argParser(graceSeconds),
  new Option(
    '--replacements-per-hour <number>',
    'in all clusters together, discard at most this many volumes per hour of members that seem lost, or of 2 % of the clusters if that is more; 0: none; env REPLACEMENTS_PER_HOUR',
  ).argParser(perHour),
  new Option(
    '--max-rolling-clusters <number>',
    'in all clusters together, roll edits of the spec out to the members of at most this many at the same time; 0: no limit; env MAX_ROLLING_CLUSTERS',
  ).argParser(rollingClusters),
  new Option(
    '--defragmentations-at-once <number>',
    'how many clusters may be defragmented at the same time; env DEFRAGMENTATIONS_AT_ONCE',
  ).argParser(atOnce),
];

function command(output: string[]): Command {
  return new Command('manager')
    .description('Runs the etcd operator.')
    .exitOverride()
    .configureOutput({ writeOut: (text) => output.push(text), writeErr: (text) => output.push(text) })
    .allowExcessArguments(false)
    .option('--metrics-bind-address <address>', 'address of /metrics; 0 turns it off', ':8080')
    .option('--health-probe-bind-address <address>', 'address of /healthz and /readyz; 0 turns it off', ':8081')
    .option(
      '--leader-elect <bool>',
      'act only while holding the Lease (leader election)',
      boolFor('--leader-elect'),
      false,
    )
    .option(
      '--observe-only <bool>',
      'change nothing: log and count what would be done. Needs no Lease, and can run beside another operator',
      boolFor('--observe-only'),
      false,
    )
    .option(
      '--cluster-domain <domain>',
      'DNS domain of the Kubernetes cluster, for certificates; default: that of this Pod, else cluster.local',
      '',
    )
    .option(
      '--operator-image <image>',
      'image of this operator, which the Jobs of snapshots and restores run; env OPERATOR_IMAGE',
    )
    .option('--etcd-image-repository <repository>', 'default repository of etcd images; env ETCD_IMAGE_REPOSITORY')
    .option(
      '--etcd-image-allowed <list>',
      'additional repositories that an EtcdCluster may use, comma-separated, /* at the end for all below; env ETCD_IMAGE_ALLOWED',
    )
    .option('--tenancy <json>', 'what tenants may refer to, as the tenancy values of the chart in JSON; env TENANCY')
    .option('--cluster-scoped <bool>', 'false: do not read nodes and PersistentVolumes; env CLUSTER_SCOPED')
    .option('--pod-user <uid>', 'user of members and agents; none: an admission plugin sets it; env POD_USER')
    .option('--watch-namespace <list>', 'namespaces to watch, comma-separated; empty: all; env WATCH_NAMESPACE')
    .option('--kubeconfig <file>', 'kubeconfig file for running outside of a Pod')
    .option('--namespace <name>', 'namespace of the Lease; env POD_NAMESPACE, else that of the Pod')
    .option('--log-level <level>', 'debug, info, warn or error; default: info');
}

/** Unknown keys are an error: a misspelt one would leave the operator more open than the administrator believes. */
function tenancyIn(text: string): Tenancy {
  let given: unknown;
  try {
    given = text === '' ? {} : JSON.parse(text);
  } catch {
    throw new Usage(`--tenancy is not JSON: ${JSON.stringify(text)}`, 2);
  }
  for (const [key, value] of Object.entries(isObject(given) ? given : { tenancy: given })) {
    const known = Object.entries(OPEN).find(([name]) => name === key)?.[1] as boolean | readonly string[] | undefined;
    const isList = Array.isArray(value) && value.every((entry) => typeof entry === 'string');
    if (known === undefined || (typeof known === 'boolean' ? typeof value !== 'boolean' : !isList))
      throw new Usage(`--tenancy: ${key} is unknown, or has a value of another type`, 2);
  }
  return { ...OPEN, ...(given as Partial<Tenancy>) };
}

/** The search path in the resolv.conf of a Pod has `svc.<domain>`. */
const domainIn = (resolvConf: string): string =>
  /^search\s.*?(?<=\s)svc\.(\S+)/m.exec(resolvConf)?.[1]?.replace(/\.$/, '') ?? 'cluster.local';

/** Throws Usage with the message to print. */
export function parseFlags(args: readonly string[], env: Env, resolvConf = '') {
  const output: string[] = [];
  const program = command(output);
  for (const flag of [...LIMITS, ...takeOverFlags]) program.addOption(flag);
  try {
    program.parse(args.map(twoDashes).map(bareBoolean), { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) throw new Usage(output.join('').trimEnd(), error.exitCode === 0 ? 0 : 2);
    throw error;
  }
  const options = program.opts<Record<string, string | undefined>>();
  const image = options['operatorImage'] ?? env['OPERATOR_IMAGE'] ?? '';
  if (image === 'controller:latest')
    throw new Usage('--operator-image is the placeholder controller:latest: set it to the image of this operator', 2);
  return {
    metricsBindAddress: options['metricsBindAddress'] ?? '',
    healthProbeBindAddress: options['healthProbeBindAddress'] ?? '',
    leaderElect: program.opts<{ leaderElect: boolean }>().leaderElect,
    observeOnly: program.opts<{ observeOnly: boolean }>().observeOnly,
    clusterDomain: options['clusterDomain'] || domainIn(resolvConf),
    operatorImage: image,
    etcdImageRepository: options['etcdImageRepository'] || env['ETCD_IMAGE_REPOSITORY'] || 'quay.io/coreos/etcd',
    etcdImageAllowed: list(options['etcdImageAllowed'] ?? env['ETCD_IMAGE_ALLOWED'] ?? ''),
    nodeLostAfterSeconds:
      program.opts<{ nodeLostAfter?: number }>().nodeLostAfter ?? nodeSeconds(env['NODE_LOST_AFTER'] || '600'),
    rotationGraceSeconds:
      program.opts<{ rotationGrace?: number }>().rotationGrace ?? graceSeconds(env['ROTATION_GRACE'] || GRACE_SECONDS),
    replacementsPerHour:
      program.opts<{ replacementsPerHour?: number }>().replacementsPerHour ??
      perHour(env['REPLACEMENTS_PER_HOUR'] || '10'),
    defragmentationsAtOnce:
      program.opts<{ defragmentationsAtOnce?: number }>().defragmentationsAtOnce ??
      atOnce(env['DEFRAGMENTATIONS_AT_ONCE'] || '10'),
    maxRollingClusters:
      program.opts<{ maxRollingClusters?: number }>().maxRollingClusters ??
      rollingClusters(env['MAX_ROLLING_CLUSTERS'] || '10'),
    tenancy: tenancyIn(options['tenancy'] ?? env['TENANCY'] ?? ''),
    clusterScoped: clusterScoped(options['clusterScoped'] ?? (env['CLUSTER_SCOPED'] || 'true')),
    podUser: podUser(options['podUser'] ?? (env['POD_USER'] || String(USER))),
    obsoletePermissions: options['obsoletePermissions'] || env['OBSOLETE_PERMISSIONS'] || undefined,
    watchNamespaces: list(options['watchNamespace'] ?? env['WATCH_NAMESPACE'] ?? ''),
    kubeconfig: options['kubeconfig'] || undefined,
    namespace: options['namespace'] || env['POD_NAMESPACE'] || undefined,
    logLevel: options['logLevel'] ?? levelOf(options['zapLogLevel']),
  };
}
