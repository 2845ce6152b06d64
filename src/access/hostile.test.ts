/** Secrets that a tenant fills to block the operator: whatever is in them, the event loop keeps turning. */
import { beforeAll, describe, expect, test } from 'vitest';
import { aCluster, FORMED, NOW } from '../../test/support/builders/builders.ts';
import { ca, leaf, makeCAs, NOTHING_MOUNTED, secretOf } from '../../test/support/builders/credentials.ts';
import { HOSTILE_PEM, LONGEST_MS, longestBlockMs } from '../../test/support/builders/hostile.ts';
import { bundle, certificates, keys } from '../../test/support/builders/hostile-certificates.ts';
import type { EtcdCluster } from '../api/etcd-cluster.ts';
import type { Tls } from '../api/tls.ts';
import type { KubeObject, Ref, Resource } from '../kube/object.ts';
import { SecretCache } from './secret-cache.ts';

beforeAll(makeCAs);

const given: Tls = {
  client: { serverSecretRef: { name: 'server' }, operatorClientSecretRef: { name: 'operator' } },
  peer: { secretRef: { name: 'peer' } },
};
const managed: Tls = { client: { managed: {} }, peer: { managed: {} } };
const auth = { enabled: true, rootCredentialsSecretRef: { name: 'root' } };
const KEYS = ['tls.crt', 'tls.key', 'ca.crt', 'next.crt', 'next.key', 'password', 'next'];

/** Evaluates as the operator does, with this content in every Secret that it reads. */
function evaluating(of: EtcdCluster, data: Readonly<Record<string, string>>): () => Promise<void> {
  const [ours, theirs] = [secretOf(data, true), secretOf(data, false)];
  const get = <T extends KubeObject>(_: Resource<T>, { name }: Ref): Promise<T | undefined> =>
    Promise.resolve((name.startsWith('db-') ? { ...ours } : { ...theirs }) as unknown as T);
  return async () => {
    const credentials = new SecretCache({
      client: { get },
      now: () => NOW,
      domain: 'cluster.local',
      look: () => Promise.resolve(undefined),
      mounted: () => NOTHING_MOUNTED,
      graceMs: 0,
      clockAheadMs: () => 0,
    });
    await credentials.view(of);
    await credentials.sources(of);
  };
}

async function expectTurns(of: EtcdCluster, text: string, places: readonly string[]): Promise<void> {
  const { cert, key } = await leaf();
  const good: Readonly<Record<string, string>> = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert };
  for (const hostile of places.length > 1 ? [...places.map((each) => [each]), places] : [places]) {
    const ms = await longestBlockMs(
      evaluating(of, { ...good, ...Object.fromEntries(hostile.map((each) => [each, text])) }),
    );
    expect(ms, `the longest block, with this in ${hostile.join(', ')}`).toBeLessThan(LONGEST_MS);
  }
}

const running = { ...FORMED, trust: { client: 'a', peer: 'b' } };
const large = Object.entries(certificates).map(([what, make]) => [what, bundle(make)] as const);

describe.each([
  ['Secrets of a user, for a new cluster', given, undefined],
  ['Secrets of a user, for a running cluster', given, running],
  ['managed Secrets', managed, running],
])('%s', (_whose, tls, status) => {
  const of = aCluster({ spec: { tls, auth }, ...(status && { status }) });
  test.each(Object.entries(HOSTILE_PEM))('1 MiB of %s', async (_what, text) => {
    for (const key of KEYS) await expectTurns(of, text, [key]);
  });
  test.each(large)('every key at its size limit full of %s', (_what, text) =>
    expectTurns(of, text, ['tls.crt', 'ca.crt', 'next.crt']),
  );
  test.each(Object.entries(keys))('%s', (_what, make) => expectTurns(of, make(), ['tls.key', 'next.key']));
});
