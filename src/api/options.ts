/** Settings of etcd itself: the typed ones, and those that are passed through. */
import Type, { type Static } from 'typebox';
import { cel, unlessUnchanged } from './cel.ts';
import type { DeepReadonly } from './meta.ts';
import { atomic } from './text.ts';

export const DEFAULT_HEARTBEAT_MS = 100;
export const DEFAULT_ELECTION_MS = 1000;

/** No more digits than etcd can count: it does not start with a time that is longer than 292 years. */
const RETENTION = String.raw`^([0-9]{1,18}|([0-9]{1,6}(\.[0-9]{1,9})?h|[0-9]{1,8}(\.[0-9]{1,9})?m|[0-9]{1,9}(\.[0-9]{1,9})?s|[0-9]{1,12}(\.[0-9]{1,9})?ms)+)$`;

const raftTiming = {
  heartbeatIntervalMilliseconds: Type.Optional(
    Type.Integer({
      format: 'int32',
      minimum: 1,
      maximum: 10_000,
      description: `How often the leader says that it is there. About the round trip between members. etcd: ${DEFAULT_HEARTBEAT_MS}.`,
    }),
  ),
  electionTimeoutMilliseconds: Type.Optional(
    Type.Integer({
      format: 'int32',
      minimum: 10,
      maximum: 50_000,
      description: `After how long without the leader another one is elected. At least five, better ten heartbeats. etcd: ${DEFAULT_ELECTION_MS}.`,
    }),
  ),
};

const seconds = (description: string, minimum: number) =>
  Type.Integer({ format: 'int32', minimum, maximum: 86_400, description });

const GrpcKeepaliveSchema = Type.Object(
  {
    minTimeSeconds: Type.Optional(seconds('Clients that ping more often than this are cut off. etcd: 5.', 1)),
    intervalSeconds: Type.Optional(seconds('How often a silent client is pinged; 0 is never. etcd: 7200.', 0)),
    timeoutSeconds: Type.Optional(seconds('How long the answer to a ping may take; 0 is for ever. etcd: 20.', 0)),
  },
  { description: 'How dead client connections are noticed.' },
);

const CorruptionCheckSchema = Type.Object(
  {
    initial: Type.Optional(
      Type.Boolean({
        description:
          'Compare the data with the other members before serving, where one of them serves already. Absent: true.',
      }),
    ),
    compactHash: Type.Optional(
      Type.Boolean({ description: 'Compare the hashes that compaction leaves, every minute; cheap. Absent: true.' }),
    ),
    intervalMinutes: Type.Optional(
      Type.Integer({
        format: 'int32',
        minimum: 0,
        maximum: 43_200,
        description: 'Also compare all of the data every so many minutes; reads everything. 0 is never. Absent: 0.',
      }),
    ),
  },
  { description: 'How etcd notices that members hold different data. "Absent" is for clusters made by this operator.' },
);

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** What Go's time.Duration holds, 292 years. Of a larger bare number etcd silently makes another time, even one below zero. */
const MOST_HOURS = 2_562_047;
const retention = 'self.autoCompactionRetention';
const hours = `(${retention}.matches('^[0-9]+$') ? double(${retention}) : ${retention}.findAll('[0-9.]+[hms]+').map(t, double(t.split('h')[0].split('m')[0].split('s')[0]) / (t.endsWith('h') ? 1.0 : t.endsWith('ms') ? 3.6e6 : t.endsWith('m') ? 60.0 : 3600.0)).sum())`;
const byRevisions = "has(self.autoCompactionMode) && self.autoCompactionMode == 'revision'";

const effective = (field: string, fallback: number): string => `(has(self.${field}) ? self.${field} : ${fallback})`;
const heartbeat = effective('heartbeatIntervalMilliseconds', DEFAULT_HEARTBEAT_MS);
const election = effective('electionTimeoutMilliseconds', DEFAULT_ELECTION_MS);

export const OptionsSchema = Type.Object(
  {
    quotaBackendBytes: Type.Optional(
      Type.Integer({
        format: 'int64',
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'How large the database may grow before etcd refuses writes. 0 means the 2 GiB of etcd. Absent: what the volume has room for (see api-design.md).',
      }),
    ),
    autoCompactionMode: Type.Optional(
      Type.Enum(['periodic', 'revision'], {
        type: 'string',
        description: 'Whether history is kept by age or by number of revisions. Absent: periodic.',
      }),
    ),
    autoCompactionRetention: Type.Optional(
      Type.String({
        pattern: RETENTION,
        maxLength: 64,
        description:
          'How much history is kept: 30m, or a number of revisions; a bare number is hours in periodic mode. "0": never compact. Absent: 1h, or 10000 revisions.',
      }),
    ),
    snapshotCount: Type.Optional(
      Type.Integer({
        format: 'int64',
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'Transactions between two snapshots of the log.',
      }),
    ),
    ...raftTiming,
    maxRequestBytes: Type.Optional(
      Type.Integer({
        format: 'int64',
        minimum: 1024,
        maximum: 104_857_600,
        description: 'The largest request that etcd takes. etcd: 1572864; more than 10 MiB slows everybody down.',
      }),
    ),
    grpcKeepalive: Type.Optional(GrpcKeepaliveSchema),
    logLevel: Type.Optional(Type.Enum([...LOG_LEVELS], { type: 'string', description: 'etcd: info.' })),
    corruptionCheck: Type.Optional(CorruptionCheckSchema),
  },
  {
    description: 'Settings of etcd. They are rendered as the flags of the version that runs.',
    ...cel(
      unlessUnchanged(['autoCompactionMode', 'autoCompactionRetention'], {
        rule: `!(${byRevisions}) || !has(${retention}) || ${retention}.matches('^[0-9]+$')`,
        message: 'options.autoCompactionRetention must be a number of revisions when autoCompactionMode is revision',
        messageExpression:
          "'options.autoCompactionRetention is ' + self.autoCompactionRetention + ': with autoCompactionMode revision it must be a number of revisions, such as 10000'",
        fieldPath: '.autoCompactionRetention',
      }),
      unlessUnchanged(['autoCompactionMode', 'autoCompactionRetention'], {
        rule: `(${byRevisions}) || !has(${retention}) || ${hours} <= ${MOST_HOURS}.0`,
        message: `options.autoCompactionRetention is more than ${MOST_HOURS} hours, and etcd counts no further`,
        messageExpression: `'options.autoCompactionRetention is ' + ${retention} + ': etcd counts no further than ${MOST_HOURS} hours, and would take another time or not start. Write such as 1h, or set autoCompactionMode to revision if it is a number of revisions'`,
        fieldPath: '.autoCompactionRetention',
      }),
      {
        rule: `${election} >= 5 * ${heartbeat}`,
        message: `options.electionTimeoutMilliseconds (etcd: ${DEFAULT_ELECTION_MS}) must be at least five times heartbeatIntervalMilliseconds (etcd: ${DEFAULT_HEARTBEAT_MS})`,
        messageExpression: `'options.electionTimeoutMilliseconds is %d: it must be at least %d, five times heartbeatIntervalMilliseconds'.format([${election}, 5 * ${heartbeat}])`,
        fieldPath: '.electionTimeoutMilliseconds',
      },
    ),
  },
);

/** Flags that a typed field sets, with that field. */
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
 * Flags that make a member what it is, by their beginning. With one of them in other hands the operator would not find the
 * member, not its data, or not the cluster that it says it is in; `config-file` makes etcd ignore every other flag.
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
/** The flag's name, with nothing that Go's parser would take for the same flag left in. */
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
        rule: String.raw`self.matches(r'^--[a-z0-9][-a-z0-9]*(=[^\x00-\x1f\x7f]*)?$')`,
        message: 'extraArgs has an entry that is no flag: write --flag=value, or --flag alone, each as one entry',
        messageExpression:
          "'extraArgs: \"' + self + '\" is no flag: write --flag=value, or --flag alone, each as one entry'",
      },
      {
        rule: `!self.startsWith('--') || !(${flag} in ${literal(Object.keys(TYPED))})`,
        message: 'extraArgs has a flag that a field of options sets: use that field',
        messageExpression: `'extraArgs: --' + ${flag} + ' is set by ' + ${fieldOf} + ': use that field'`,
      },
      {
        rule: `!self.startsWith('--') || !(${literal(OWNED)}.exists(f, f.endsWith('-') || f in ['initial-advertise', 'initial-cluster', 'discovery', 'proxy'] ? ${flag}.startsWith(f) : ${flag} == f))`,
        message: 'extraArgs has a flag that is set by the operator or would undo what it promises: remove it',
        messageExpression: `'extraArgs: --' + ${flag} + ' is set by the operator or would undo what it promises: remove it'`,
      },
    ),
  }),
  {
    maxItems: 32,
    ...atomic,
    description:
      'Further flags of etcd, as --flag=value, for what options has no field. Not for flags that the operator sets; --feature-gates is merged with its own, which win. A flag that the version does not know keeps etcd from starting.',
  },
);

export type EtcdOptions = DeepReadonly<Static<typeof OptionsSchema>>;
