/** Random edits of the spec, from its schema: valid values, the bounds, and values that the API server refuses. Pure. */
import fc from 'fast-check';
import { clusterSpecSchema, hints, PRIORITY, valueOf } from '../support/builders/spec-arbitrary.ts';
import type { Random } from './random.ts';

export interface PatchStep {
  readonly op: 'add' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}

const FIELDS: readonly string[] = Object.keys(clusterSpecSchema.properties ?? {});
/** An edit of one of these is refused with all others that it is made with. */
const IMMUTABLE: readonly string[] = ['tls', 'auth', 'bootstrap'];

/**
 * Not every valid spec leaves a cluster that a later spec could help within a minute: with an election timeout of 50 s, etcd
 * itself takes that long, and a database quota that is used up stops all writes for good.
 */
const LIVEABLE = {
  ...hints,
  '.replicas': fc.constantFrom(0, 1, 2, 3, 3, 4, 5, 7),
  '.storage.size': fc.constantFrom('1Gi', '1Gi', '1Gi', '2Gi', '512Mi'),
  '.quotaBackendBytes': fc.constantFrom(0, 104_857_600, 1_073_741_824),
  '.electionTimeoutMilliseconds': fc.constantFrom(1_000, 2_000),
  '.heartbeatIntervalMilliseconds': fc.constantFrom(1, 10, 100),
  '.priorityClassName': fc.constantFrom(PRIORITY, 'absent'),
  '.extraArgs[]': fc.constantFrom(
    '--max-txn-ops=256',
    '--pre-vote',
    '--metrics=extensive',
    '--no-such-flag',
    '--name=x',
  ),
};
const MIN_QUOTA = 100_000_000;

/** Of the values, this share is beyond the bounds of its field. */
const ODD = [0, 0, 0, 0, 0.05, 0.5];

/** One to three of them; the number of replicas more often than others, because it moves members. */
export function fieldsToEdit(random: Random): readonly string[] {
  const editable = random.int(8) === 0 ? FIELDS : FIELDS.filter((field) => !IMMUTABLE.includes(field));
  const chosen = random.some(editable, random.between(1, 3));
  return random.int(3) === 0 ? [...new Set(['replicas', ...chosen])] : chosen;
}

export function randomEdit(random: Random, present: Readonly<Record<string, unknown>>): readonly PatchStep[] {
  return fieldsToEdit(random).map((field): PatchStep => {
    const path = `/spec/${field}`;
    if (present[field] !== undefined && random.int(5) === 0) return { op: 'remove', path };
    const schema = clusterSpecSchema.properties?.[field] ?? {};
    const arbitrary = valueOf(schema, LIVEABLE, random.of(ODD) ?? 0, `.${field}`);
    const [value] = fc.sample(arbitrary, { numRuns: 1, seed: random.int(2 ** 31) });
    return { op: 'add', path, value: field === 'options' ? liveable(value) : value };
  });
}

function liveable(options: unknown): unknown {
  const { quotaBackendBytes: quota, ...rest } = Object(options) as Readonly<Record<string, unknown>>;
  return typeof quota === 'number' && quota > 0 && quota < MIN_QUOTA ? rest : options;
}
