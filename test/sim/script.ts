/** A script: a list of actions, each some time after the previous one. Plain data, so that it can be saved and shrunk. */
import fc from 'fast-check';
import type { CredentialsOptions } from './world/credentials.ts';

const KINDS = [
  'etcdclusters',
  'etcdmembers',
  'pods',
  'services',
  'persistentvolumeclaims',
  'poddisruptionbudgets',
] as const;

/** Each kind of action with its parameters. `n` chooses among the existing objects. */
const ACTIONS = {
  killOperator: { steps: fc.nat(60) },
  freezeOperator: { ms: fc.integer({ min: 1_000, max: 40_000 }) },
  jumpClock: { ms: fc.integer({ min: 60_000, max: 1_800_000 }) },
  holdWatch: { kind: fc.constantFrom(...KINDS), ms: fc.integer({ min: 500, max: 30_000 }) },
  mergeWatch: { ms: fc.integer({ min: 1_000, max: 20_000 }) },
  breakWatches: { how: fc.constantFrom('ended' as const, 'gone' as const) },
  apiTrouble: {
    kind: fc.constantFrom('conflict', 'tooManyRequests', 'serverError', 'lostRequest', 'lostAnswer', 'slow'),
    ms: fc.integer({ min: 500, max: 20_000 }),
    percent: fc.integer({ min: 10, max: 100 }),
  },
  etcdTrouble: {
    kind: fc.constantFrom('lostRequest', 'lostAnswer', 'disconnected'),
    ms: fc.integer({ min: 500, max: 20_000 }),
    percent: fc.integer({ min: 10, max: 100 }),
  },
  refusePods: { ms: fc.integer({ min: 60_000, max: 900_000 }) },
  deletePod: { n: fc.nat(20) },
  deleteAllPods: {},
  evictPod: { n: fc.nat(20) },
  crash: {
    n: fc.nat(20),
    how: fc.constantFrom('killed' as const, 'oom' as const, 'probed' as const),
    times: fc.integer({ min: 1, max: 8 }),
  },
  endPod: { n: fc.nat(20), phase: fc.constantFrom('Failed', 'Succeeded') },
  wipe: { n: fc.nat(20) },
  damage: { n: fc.nat(20) },
  fill: { n: fc.nat(20) },
  corrupt: { n: fc.nat(20), ms: fc.integer({ min: 100, max: 60_000 }) },
  loseVolume: { n: fc.nat(20) },
  /** Many of these are only reboots. */
  nodeOff: {
    n: fc.nat(20),
    ms: fc.oneof(fc.integer({ min: 1_000, max: 30_000 }), fc.integer({ min: 1_000, max: 900_000 })),
  },
  nodeCutOff: { n: fc.nat(20), ms: fc.integer({ min: 1_000, max: 900_000 }) },
  nodeGone: { n: fc.nat(20) },
  nodeOutOfService: { n: fc.nat(20) },
  reuseAddress: { n: fc.nat(20), ms: fc.integer({ min: 60_000, max: 300_000 }) },
  isolate: { n: fc.nat(20), ms: fc.integer({ min: 1_000, max: 120_000 }) },
  forceNew: { n: fc.nat(20), ms: fc.integer({ min: 1_000, max: 60_000 }) },
  misjudge: { percent: fc.constantFrom(40, 100), ms: fc.integer({ min: 1_000, max: 60_000 }) },
  slowLearner: { ms: fc.integer({ min: 1_000, max: 60_000 }) },
  deleteMember: { n: fc.nat(20) },
  deleteAllMembers: {},
  stripOwner: { n: fc.nat(20), all: fc.boolean() },
  deleteClaim: { n: fc.nat(20) },
  unlabelClaim: { n: fc.nat(20) },
  deleteService: { which: fc.constantFrom('headless', 'client') },
  deleteBudget: {},
  foreign: { what: fc.constantFrom('headless', 'client', 'budget', 'pod', 'claim') },
  scale: { replicas: fc.constantFrom(0, 1, 1, 2, 3, 3, 3, 4, 5) },
  edit: { quota: fc.integer({ min: 100, max: 300 }) },
  /** Another template for members, right or wrong. What is wrong is taken back after this time, or when the faults end. */
  roll: {
    what: fc.constantFrom(
      'options',
      'resources',
      'patch',
      'minorUp',
      'minorUp',
      'minorDown',
      'minorDown',
      'noImage',
      'noImageOfNextMinor',
      'noFlag',
      'noNode',
      'onDelete',
      'restart',
    ),
    ms: fc.oneof(fc.integer({ min: 1_000, max: 60_000 }), fc.integer({ min: 60_000, max: 1_200_000 })),
  },
  suspend: { ms: fc.oneof(fc.integer({ min: 1_000, max: 60_000 }), fc.integer({ min: 60_000, max: 900_000 })) },
  /** With an image that the administrator does not allow. */
  editForbidden: { replicas: fc.constantFrom(0, 1, 3, 5) },
  /** The operator may observe the deletion late. */
  deleteCluster: { unseenMs: fc.constantFrom(0, 0, 10_000, 30_000) },
  createAgain: {},
  rotateCA: {},
  replaceCertificates: {
    part: fc.constantFrom('client' as const, 'peer' as const),
    by: fc.constantFrom('the same CA' as const, 'another CA' as const, 'another CA' as const),
  },
  changePassword: {},
  deleteSecret: { n: fc.nat(40) },
  /** Around one of its next writes of a Secret, or calls that concern users and passwords. */
  killAtSecret: { nth: fc.integer({ min: 1, max: 8 }), steps: fc.nat(8) },
  expire: {},
  /** A user asks for a defragmentation of every member, each of which takes this long. */
  defragment: { ms: fc.oneof(fc.nat(1_000), fc.integer({ min: 1_000, max: 120_000 })) },
  /** Clients write until the database has reached its quota. */
  outgrow: {},
  /** A snapshot streams from a member. */
  stream: { n: fc.nat(20), ms: fc.integer({ min: 1_000, max: 120_000 }) },
  unreadableSecrets: { ms: fc.integer({ min: 1_000, max: 400_000 }) },
} satisfies Readonly<Record<string, Readonly<Record<string, fc.Arbitrary<unknown>>>>>;

export type ActionKind = keyof typeof ACTIONS;
type Values<R> = { readonly [K in keyof R]: R[K] extends fc.Arbitrary<infer T> ? T : never };
export type Action = {
  readonly [K in ActionKind]: { readonly do: K; readonly after: number } & Values<(typeof ACTIONS)[K]>;
}[ActionKind];

export interface Script {
  readonly seed: number;
  readonly replicas: number;
  readonly version: string;
  readonly medium: '' | 'Memory';
  readonly deletionPolicy: 'Delete' | 'Retain';
  readonly localVolumes: boolean;
  readonly nodes: number;
  /** The cluster is restored from a snapshot, where that is allowed: on volumes. */
  readonly restores?: boolean;
  /** The cluster has TLS, and perhaps auth. */
  readonly credentials?: CredentialsOptions;
  /** Peers have self-signed certificates, as the annotation of the cluster asks. */
  readonly peerAutoTls?: boolean;
  /** The cluster has a small quota, and `maintenance.autoRemedy`. */
  readonly remedies?: boolean;
  readonly actions: readonly Action[];
}

/** A CA rotation takes many minutes of virtual time, and so do the pauses between what users do to it. */
const PAUSES = fc.oneof(fc.nat(300), fc.nat(5_000), fc.nat(60_000));
const LONG_PAUSES = fc.oneof(fc.nat(5_000), fc.nat(60_000), fc.nat(400_000));

/** What scripts consist of. A kind that is listed twice happens twice as often. */
export interface Scope {
  readonly replicas: readonly number[];
  readonly media: readonly Script['medium'][];
  readonly actions: readonly ActionKind[];
  /** Of this many worlds one has TLS. */
  readonly securedOneIn: number;
  /** What happens to clusters with TLS. */
  readonly secured: readonly ActionKind[];
  /** See `Script.remedies`. */
  readonly remedies?: boolean;
}

const anAction = (kinds: readonly ActionKind[], pauses = PAUSES): fc.Arbitrary<Action> =>
  fc.oneof(
    ...kinds.map((kind) =>
      fc.record({
        do: fc.constant(kind),
        after: fc.noShrink(pauses),
        ...ACTIONS[kind],
      }),
    ),
  ) as fc.Arbitrary<Action>;

const someCredentials: fc.Arbitrary<CredentialsOptions> = fc.record({
  client: fc.constantFrom('managed' as const, 'user' as const),
  mutual: fc.constantFrom(true, true, false),
  peer: fc.constantFrom('managed' as const, 'managed' as const, 'user' as const, 'user' as const, 'none' as const),
  auth: fc.boolean(),
});

export function scripts({
  replicas,
  media,
  actions,
  secured,
  securedOneIn,
  remedies = false,
}: Scope): fc.Arbitrary<Script> {
  const common = {
    seed: fc.noShrink(fc.nat()), // a smaller seed is not a simpler world
    replicas: fc.constantFrom(...replicas),
    version: fc.constantFrom('3.6.16', '3.5.33'),
    medium: fc.constantFrom(...media),
    deletionPolicy: fc.constantFrom('Delete' as const, 'Retain' as const),
    localVolumes: fc.boolean(),
    nodes: fc.integer({ min: 3, max: 5 }),
    ...(remedies && { remedies: fc.constant(true) }),
  };
  const plain = fc.record({
    ...common,
    restores: fc.constantFrom(false, false, true),
    actions: fc.array(anAction(actions), { minLength: 1, maxLength: 12 }),
  });
  const withCredentials = fc.record({
    ...common,
    credentials: someCredentials,
    actions: fc.array(anAction(secured, LONG_PAUSES), { minLength: 1, maxLength: 12 }),
  });
  return fc.oneof({ arbitrary: plain, weight: securedOneIn - 1 }, { arbitrary: withCredentials, weight: 1 });
}
