/** Secrets of a cluster, the CAs of their certificates, and a short form of their evaluation. */

import { digestOf } from '../../../src/access/evaluate/ca-bundle.ts';
import { type Evaluation, evaluate } from '../../../src/access/evaluate/evaluate.ts';
import type { Mounted } from '../../../src/access/evaluate/mounts.ts';
import type { EtcdCluster } from '../../../src/api/etcd-cluster.ts';
import { API_VERSION } from '../../../src/api/names.ts';
import type { Tls } from '../../../src/api/tls.ts';
import type { Secret } from '../../../src/gen/kube.ts';
import { createCA, issue, type KeyPair, type Leaf } from '../../../src/pki/issue.ts';
import { systemKeySource } from '../../../src/pki/key-source.ts';
import { aCluster, CLUSTER_UID, FORMED, NOW } from './builders.ts';

export const DAY = 24 * 60 * 60_000;
export const GRACE = 120_000;
export const NOTHING_MOUNTED: Mounted = { running: false, complete: true, bundles: { client: [], peer: [] } };
/** The host names of members. */
export const NAMES = ['*.db.ns.svc', '*.db.ns.svc.cluster.local', 'db-client.ns.svc'];

export let ca: KeyPair;
export let next: KeyPair;

/** Before all tests of a file. */
export async function makeCAs(): Promise<void> {
  ca = await createCA('ca', NOW - DAY, systemKeySource);
  next = await createCA('next', NOW - DAY, systemKeySource);
}

export const leaf = (change: Partial<Leaf> = {}, by = ca, now = NOW): Promise<KeyPair> =>
  issue(
    by,
    { name: 'x', hosts: NAMES, usages: ['server auth', 'client auth'], durationMs: 30 * DAY, ...change },
    now,
    systemKeySource,
  );

export const base64 = (text: string): string => Buffer.from(text).toString('base64');

export function secretOf(texts: Readonly<Record<string, string>>, ofCluster: boolean): Secret {
  const owner = { apiVersion: API_VERSION, kind: 'EtcdCluster', name: 'db', uid: CLUSTER_UID, controller: true };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...(ofCluster && { ownerReferences: [owner] }) },
    data: Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, base64(text)])),
  };
}

export const secret = ({ cert, key }: KeyPair, trust?: string, ofCluster = false): Secret =>
  secretOf({ 'tls.crt': cert, 'tls.key': key, ...(trust !== undefined && { 'ca.crt': trust }) }, ofCluster);

/** The Secret that members mount, with the contents of the user's. */
export const aCopy = (of: Secret | undefined): Secret => ({ ...of, metadata: secretOf({}, true).metadata }) as Secret;

export const recorded = () => ({ client: digestOf(ca.cert) ?? '', peer: digestOf(ca.cert) ?? '' });

export type Held = Readonly<Record<string, Secret>>;
export const cluster = (tls: Tls, formed = false): EtcdCluster =>
  aCluster({ spec: { tls }, ...(formed && { status: FORMED }) });
export const judged = (of: EtcdCluster, held: Held, now = NOW): Evaluation =>
  evaluate(of, new Map(Object.entries(held)), {
    now,
    domain: 'cluster.local',
    mounted: NOTHING_MOUNTED,
    graceMs: GRACE,
  });

/** `role: action finding…` */
export function summaryOf({ view: { cas, certificates } }: Pick<Evaluation, 'view'>): readonly string[] {
  const line = (name: string, todo: string | undefined, findings: readonly { readonly is: string }[]): string =>
    [`${name}:`, todo ?? '-', ...findings.map(({ is }) => is)].join(' ');
  return [
    ...cas.map((a) => line(a.secret, a.todo, a.findings)),
    ...certificates.map((c) => line(c.need.role, c.todo, c.findings)),
  ];
}
