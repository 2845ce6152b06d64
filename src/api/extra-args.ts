/** Flags of etcd that users pass through, and those that are refused. */
import Type from 'typebox';
import { cel } from './cel.ts';
import { atomic } from './text.ts';

/** Flags that a field of options sets, with that field. */
const TYPED: Readonly<Record<string, string>> = {
  'quota-backend-bytes': 'options.quotaBackendBytes',
  'auto-compaction-mode': 'options.autoCompactionMode',
  'auto-compaction-retention': 'options.autoCompactionRetention',
  'snapshot-count': 'options.snapshotCount',
  'heartbeat-interval': 'options.heartbeatIntervalMilliseconds',
  'election-timeout': 'options.electionTimeoutMilliseconds',
  'max-request-bytes': 'options.maxRequestBytes',
  'grpc-keepalive-min-time': 'options.grpcKeepalive',
  'grpc-keepalive-interval': 'options.grpcKeepalive',
  'grpc-keepalive-timeout': 'options.grpcKeepalive',
  'log-level': 'options.logLevel',
  'corrupt-check-time': 'options.corruptionCheck',
  'experimental-corrupt-check-time': 'options.corruptionCheck',
  'experimental-initial-corrupt-check': 'options.corruptionCheck',
  'experimental-compact-hash-check-enabled': 'options.corruptionCheck',
};

/**
 * Flags, or prefixes of flags, that only the operator sets. If a user set one, the operator could not find the member, its data
 * or the cluster that the member reports; `config-file` makes etcd ignore every other flag.
 */
const OWNED = [
  'name',
  'data-dir',
  'wal-dir',
  'config-file',
  'listen-',
  'advertise-',
  'initial-advertise',
  'initial-cluster',
  'force-new-cluster',
  'discovery',
  'proxy',
  'strict-reconfig-check',
  'max-learners',
  'unsafe-no-fsync',
  'auth-token',
  'cert-file',
  'key-file',
  'client-',
  'trusted-ca-file',
  'auto-tls',
  'peer-',
  'experimental-peer-',
  'host-whitelist',
  'log-outputs',
  'logger',
  'log-rotation-config-json',
  'enable-log-rotation',
  'enable-v2',
  'experimental-enable-v2v3',
  'v2-deprecation',
  'socket-',
  'version',
  'help',
  'h',
] as const;

const MAX_ARGUMENT = 512;
/** Entries of OWNED that stand for every flag that begins so. */
const PREFIXES = ['initial-advertise', 'initial-cluster', 'discovery', 'proxy'];
const FLAG = String.raw`^--[a-z0-9][-a-z0-9]*(=[^\x00-\x1f\x7f]*)?$`;

/** Why an entry of extraArgs is refused, by the rules below; `undefined` when it is not. For objects that no rule has checked. */
export function deniedArgument(entry: string): string | undefined {
  if (entry.length > MAX_ARGUMENT || !new RegExp(FLAG).test(entry)) return 'it is not a flag';
  const name = entry.slice(2).split('=')[0] ?? '';
  if (Object.hasOwn(TYPED, name)) return `--${name} is set by ${TYPED[name]}`;
  const isPrefix = (owned: string): boolean => owned.endsWith('-') || PREFIXES.includes(owned);
  const denied = OWNED.some((owned) => (isPrefix(owned) ? name.startsWith(owned) : name === owned));
  return denied ? `--${name} is set by the operator or would break what it guarantees` : undefined;
}

/** The name of the flag; the first rule excludes other spellings that Go's parser would accept for the same flag. */
const flag = "self.split('=')[0].substring(2)";
const literal = (names: readonly string[]): string => `[${names.map((n) => `'${n}'`).join(', ')}]`;

const fieldOf = `{${Object.entries(TYPED)
  .map(([name, field]) => `'${name}': '${field}'`)
  .join(', ')}}[${flag}]`;

export const ExtraArgsSchema = Type.Array(
  Type.String({
    maxLength: MAX_ARGUMENT,
    ...cel(
      {
        rule: `self.matches(r'${FLAG}')`,
        message: 'extraArgs has an entry that is not a flag: write --flag=value, or --flag alone, each as one entry',
        messageExpression:
          "'extraArgs: \"' + self + '\" is not a flag: write --flag=value, or --flag alone, each as one entry'",
      },
      {
        rule: `!self.startsWith('--') || !(${flag} in ${literal(Object.keys(TYPED))})`,
        message: 'extraArgs has a flag that a field of options sets: use that field',
        messageExpression: `'extraArgs: --' + ${flag} + ' is set by ' + ${fieldOf} + ': use that field'`,
      },
      {
        rule: `!self.startsWith('--') || !(${literal(OWNED)}.exists(f, f.endsWith('-') || f in ${literal(PREFIXES)} ? ${flag}.startsWith(f) : ${flag} == f))`,
        message: 'extraArgs has a flag that is set by the operator or would break what it guarantees: remove it',
        messageExpression: `'extraArgs: --' + ${flag} + ' is set by the operator or would break what it guarantees: remove it'`,
      },
    ),
  }),
  {
    maxItems: 32,
    ...atomic,
    description:
      'Additional flags of etcd, as --flag=value, where options has no field. Flags that the operator sets are refused; --feature-gates is merged with its own, which take precedence. etcd does not start with a flag that its version does not know.',
  },
);
