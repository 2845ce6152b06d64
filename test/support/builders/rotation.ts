/** A CA rotation: the CA bundles that members have loaded, the recorded one, and the due actions. */

import { digestOf } from '../../../src/access/evaluate/ca-bundle.ts';
import { type Evaluation, evaluate } from '../../../src/access/evaluate/evaluate.ts';
import type { Mounted } from '../../../src/access/evaluate/mounts.ts';
import type { EtcdClusterStatus } from '../../../src/api/etcd-cluster-status.ts';
import { ROTATE_CA_ANNOTATION, trustName, WRITTEN_AT_ANNOTATION } from '../../../src/api/names.ts';
import type { Tls } from '../../../src/api/tls.ts';
import type { Secret } from '../../../src/gen/kube.ts';
import { createCA, type KeyPair } from '../../../src/pki/issue.ts';
import { systemKeySource } from '../../../src/pki/key-source.ts';
import { aCluster, FORMED, NOW } from './builders.ts';
import { DAY, GRACE, leaf as issued, secretOf } from './credentials.ts';

export const LONG_AGO = NOW - DAY;

export let old: KeyPair;
export let next: KeyPair;
export let third: KeyPair;
export let leaves: Readonly<Record<Name, KeyPair>>;

/** Before all tests of a file. */
export const makeCAs = (): Promise<void> => makeCAsSince(NOW - DAY);

/** The old CA and its certificate were created at that time. */
export async function makeCAsSince(oldSince: number): Promise<void> {
  const since = { old: oldSince, next: NOW - DAY, third: NOW - DAY };
  [old, next, third] = (await Promise.all(
    Object.entries(since).map(([name, at]) => createCA(name, at, systemKeySource)),
  )) as [KeyPair, KeyPair, KeyPair];
  leaves = { old: await issued({}, old, oldSince + DAY), next: await issued({}, next), third: await issued({}, third) };
}

export type Name = 'old' | 'next' | 'third';
const certOf = (name: Name): string => ({ old, next, third })[name].cert;
/** The CA bundle of these CAs. */
export const texts = (names: readonly Name[]): string => names.map(certOf).join('');
export const digest = (...names: readonly Name[]): string => digestOf(texts(names)) ?? '';

export function secret(data: Readonly<Record<string, string>>, ofCluster = true, writtenAt = LONG_AGO): Secret {
  const made = secretOf(data, ofCluster);
  const annotations = { [WRITTEN_AT_ANNOTATION]: new Date(writtenAt).toISOString() };
  return { ...made, metadata: { ...made.metadata, annotations } };
}

/** A managed Secret: a certificate, and a CA bundle. */
export const leaf = (by: Name, trust: readonly Name[], writtenAt?: number): Secret =>
  secret({ 'tls.crt': leaves[by].cert, 'tls.key': leaves[by].key, 'ca.crt': texts(trust) }, true, writtenAt);

export interface Was {
  readonly tls: Tls;
  /** The recorded CA bundle, and those of running members. */
  readonly recorded: readonly Name[];
  readonly running?: readonly (readonly Name[])[];
  readonly incomplete?: boolean;
  /** There is no member, and no cluster ID is recorded. */
  readonly unformed?: boolean;
  readonly secrets: Readonly<Record<string, Secret | undefined>>;
  readonly annotation?: string;
  readonly commanded?: string;
  readonly now?: number;
  /** The Secret of the next CA bundle does not exist yet. */
  readonly unwritten?: boolean;
}

export function judged(was: Was): Evaluation {
  const { tls, recorded, unformed = false, running = unformed ? [] : [recorded], now = NOW } = was;
  const parts = [...(tls.client ? (['client'] as const) : []), ...(tls.peer ? (['peer'] as const) : [])];
  const of = <T>(value: T): Record<string, T> => Object.fromEntries(parts.map((part) => [part, value]));
  const status: EtcdClusterStatus = {
    ...(!unformed && FORMED),
    trust: { ...of(digest(...recorded)), ...(was.commanded !== undefined && { commanded: of(was.commanded) }) },
  };
  const made = aCluster({ spec: { tls }, status });
  const annotations = was.annotation === undefined ? {} : { [ROTATE_CA_ANNOTATION]: was.annotation };
  const cluster = { ...made, metadata: { ...made.metadata, annotations } };
  const bundles = (part: 'client' | 'peer') => running.map((names) => trustName('db', part, digest(...names)));
  const mounted: Mounted = {
    running: !unformed,
    complete: was.incomplete !== true,
    bundles: { client: bundles('client'), peer: bundles('peer') },
  };
  const there = (['client', 'peer'] as const).flatMap((part) =>
    [recorded, ...running].map(
      (names) => [trustName('db', part, digest(...names)), secret({ 'ca.crt': texts(names) })] as const,
    ),
  );
  const held = new Map([...there, ...Object.entries(was.secrets)]);
  const around = { now, domain: 'cluster.local', mounted, graceMs: GRACE };
  const first = evaluate(cluster, held, around);
  if (was.unwritten) return first;
  for (const [name, text] of first.bundles) if (!held.has(name)) held.set(name, secret({ 'ca.crt': text }));
  return evaluate(cluster, held, around);
}

/** The due writes, and the digests to record. */
export function outcome(was: Was): readonly string[] {
  const { view } = judged(was);
  const nameOf = (of: string): string => {
    const sets: readonly (readonly Name[])[] = [
      ['old'],
      ['next'],
      ['third'],
      ['old', 'next'],
      ['next', 'third'],
      ['old', 'third'],
      ['old', 'next', 'third'],
    ];
    return sets.find((names) => digest(...names) === of)?.join('+') ?? 'unknown';
  };
  return [
    ...view.cas.flatMap(({ secret: name, todo }) => (todo ? [`${todo} ${name}`] : [])),
    ...view.certificates.flatMap(({ need, todo }) => (todo ? [`${todo} ${need.role}`] : [])),
    ...view.trusts.flatMap((t) => (t.next ? [`${t.next.step} to ${nameOf(t.next.digest)}`] : [])),
  ];
}
