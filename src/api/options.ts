/** Settings of etcd itself: the typed ones, and those that are passed through. */
import { cel, unlessUnchanged } from './cel.ts';
import type { Accepted } from './meta.ts';
import { optionalEnum, optionalFlag, optionalInt32, optionalInt64, optionalObject, optionalText } from './optional.ts';

export const DEFAULT_HEARTBEAT_MS = 100;
export const DEFAULT_ELECTION_MS = 1000;

/** As many digits as etcd can parse: it does not start with a duration of more than 292 years. */
const RETENTION = String.raw`^([0-9]{1,18}|([0-9]{1,6}(\.[0-9]{1,9})?h|[0-9]{1,8}(\.[0-9]{1,9})?m|[0-9]{1,9}(\.[0-9]{1,9})?s|[0-9]{1,12}(\.[0-9]{1,9})?ms)+)$`;

const raftTiming = {
  heartbeatIntervalMilliseconds: optionalInt32(
    `Interval between heartbeats of the leader, about the round-trip time between members. etcd: ${DEFAULT_HEARTBEAT_MS}.`,
    { minimum: 1, maximum: 10_000 },
  ),
  electionTimeoutMilliseconds: optionalInt32(
    `After how long without a heartbeat a new leader is elected: at least five, better ten heartbeat intervals. etcd: ${DEFAULT_ELECTION_MS}.`,
    { minimum: 10, maximum: 50_000 },
  ),
};

const seconds = (description: string, minimum: number) => optionalInt32(description, { minimum, maximum: 86_400 });

const grpcKeepalive = optionalObject('gRPC keepalive: how dead client connections are detected.', {
  minTimeSeconds: seconds('Clients that ping more often than this are disconnected. etcd: 5.', 1),
  intervalSeconds: seconds('How often an idle client is pinged; 0 is never. etcd: 7200.', 0),
  timeoutSeconds: seconds('How long the response to a ping may take; 0 is for ever. etcd: 20.', 0),
});

const corruptionCheck = optionalObject(
  'How etcd detects that members have different data. "Absent" applies to clusters that this operator created.',
  {
    initial: optionalFlag(
      'Compare the data with the other members before serving, if one of them is already serving. Absent: true.',
    ),
    compactHash: optionalFlag('Compare the hashes of compacted revisions every minute; cheap. Absent: true.'),
    intervalMinutes: optionalInt32(
      'Also compare the whole database at this interval, which reads all of the data. 0 is never. Absent: 0.',
      { minimum: 0, maximum: 43_200 },
    ),
  },
);

/** The maximum of Go's time.Duration, 292 years. A larger bare number overflows in etcd without an error, even to a negative time. */
const MAX_HOURS = 2_562_047;
const retention = 'self.autoCompactionRetention';
const hours = `(${retention}.matches('^[0-9]+$') ? double(${retention}) : ${retention}.findAll('[0-9.]+[hms]+').map(t, double(t.split('h')[0].split('m')[0].split('s')[0]) / (t.endsWith('h') ? 1.0 : t.endsWith('ms') ? 3.6e6 : t.endsWith('m') ? 60.0 : 3600.0)).sum())`;
const byRevisions = "has(self.autoCompactionMode) && self.autoCompactionMode == 'revision'";

const effective = (field: string, fallback: number): string => `(has(self.${field}) ? self.${field} : ${fallback})`;
const heartbeat = effective('heartbeatIntervalMilliseconds', DEFAULT_HEARTBEAT_MS);
const election = effective('electionTimeoutMilliseconds', DEFAULT_ELECTION_MS);

export const options = optionalObject(
  'Settings of etcd, rendered as flags of the version that runs. "etcd: x" is the default of etcd.',
  {
    quotaBackendBytes: optionalInt64(
      'Database quota: above this size etcd refuses writes (database space exceeded). 0: the 2 GiB of etcd. Absent: what fits on the volume (see api-design.md).',
      { minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
    ),
    autoCompactionMode: optionalEnum(
      'Whether history is kept by age (periodic) or by number of revisions (revision). Absent: periodic.',
      ['periodic', 'revision'],
    ),
    autoCompactionRetention: optionalText(
      'How much history is kept: 30m, or a number of revisions; a bare number is hours in periodic mode. "0": never compact. Absent: 1h, or 10000 revisions.',
      { pattern: RETENTION, maxLength: 64 },
    ),
    snapshotCount: optionalInt64('Number of transactions between two snapshots of the raft log.', {
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
    }),
    ...raftTiming,
    maxRequestBytes: optionalInt64(
      'The largest request that etcd accepts. etcd: 1572864; more than 10 MiB slows down all clients.',
      { minimum: 1024, maximum: 104_857_600 },
    ),
    grpcKeepalive,
    logLevel: optionalEnum('Log level of etcd. etcd: info.', ['debug', 'info', 'warn', 'error']),
    corruptionCheck,
  },
  cel(
    unlessUnchanged(['autoCompactionMode', 'autoCompactionRetention'], {
      rule: `!(${byRevisions}) || !has(${retention}) || ${retention}.matches('^[0-9]+$')`,
      message: 'options.autoCompactionRetention must be a number of revisions when autoCompactionMode is revision',
      messageExpression:
        "'options.autoCompactionRetention is ' + self.autoCompactionRetention + ': with autoCompactionMode revision it must be a number of revisions, such as 10000'",
      fieldPath: '.autoCompactionRetention',
    }),
    unlessUnchanged(['autoCompactionMode', 'autoCompactionRetention'], {
      rule: `(${byRevisions}) || !has(${retention}) || ${hours} <= ${MAX_HOURS}.0`,
      message: `options.autoCompactionRetention is more than ${MAX_HOURS} hours, the maximum of etcd`,
      messageExpression: `'options.autoCompactionRetention is ' + ${retention} + ': the maximum of etcd is ${MAX_HOURS} hours, and it would use another duration or not start. Set for example 1h, or set autoCompactionMode to revision if it is a number of revisions'`,
      fieldPath: '.autoCompactionRetention',
    }),
    {
      rule: `${election} >= 5 * ${heartbeat}`,
      message: `options.electionTimeoutMilliseconds (etcd: ${DEFAULT_ELECTION_MS}) must be at least five times heartbeatIntervalMilliseconds (etcd: ${DEFAULT_HEARTBEAT_MS})`,
      messageExpression: `'options.electionTimeoutMilliseconds is %d: it must be at least %d, five times heartbeatIntervalMilliseconds'.format([${election}, 5 * ${heartbeat}])`,
      fieldPath: '.electionTimeoutMilliseconds',
    },
  ),
);

export type EtcdOptions = NonNullable<Accepted<typeof options>>;
