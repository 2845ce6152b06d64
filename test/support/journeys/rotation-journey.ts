/** What every cluster goes through during a CA rotation, while a client with certificates of the old and then the new CA writes. */
import { X509Certificate } from 'node:crypto';
import { expect, onTestFinished } from 'vitest';
import { ETCD_PORTS } from '../../../src/domain/certificate-requirements.ts';
import type { TlsMaterial } from '../../../src/etcd/transport.ts';
import { eventually, pause } from '../servers/processes.ts';
import { settled } from './at-rest.ts';
import { type AnObject, conditionOf, KIND, type Tenant } from './journey.ts';
import { serving } from './serving.ts';
import { certificatesAre, type Source } from './tls.ts';

/** Two restarts of each of three members, and twice the grace period of clients. */
export const PATIENCE_MS = 15 * 60_000;
const POLL_MS = 200;
/** Less than the grace period of clients: see setup.ts. */
const CLIENT_POLL_MS = 5_000;

const podsOf = (tenant: Tenant, name: string): Promise<readonly AnObject[]> =>
  tenant.list('pods', `etcd-operator.cozystack.io/cluster=${name}`);
const isReady = ({ metadata, status }: AnObject): boolean =>
  metadata.deletionTimestamp === undefined &&
  (status?.conditions ?? []).some((c) => c.type === 'Ready' && c.status === 'True');

/** Counts members that are down at once, and how often each was started. */
function count(tenant: Tenant, name: string) {
  const uids = new Map<string, Set<string>>();
  let [over, maxDown] = [false, 0];
  const running = (async () => {
    while (!over) {
      const pods = await podsOf(tenant, name);
      for (const { metadata } of pods)
        uids.set(metadata.name, (uids.get(metadata.name) ?? new Set()).add(metadata.uid ?? ''));
      maxDown = Math.max(maxDown, 3 - pods.filter(isReady).length);
      await pause(POLL_MS);
    }
  })();
  onTestFinished(() => {
    over = true;
  });
  return async () => {
    over = true;
    await running;
    return { maxDown, restarts: [...uids.values()].map((known) => known.size - 1) };
  };
}

/** The certificates of a client, read periodically like a mounted Secret. */
async function following(material: () => Promise<TlsMaterial>): Promise<() => TlsMaterial> {
  let current = await material();
  let over = false;
  onTestFinished(() => {
    over = true;
  });
  void (async () => {
    while (!over) {
      await pause(CLIENT_POLL_MS);
      current = await material().catch(() => current);
    }
  })();
  return () => current;
}

export interface Rotation {
  readonly source: Source;
  readonly client: () => Promise<TlsMaterial>;
  /** Replaces the CA. */
  readonly exchange: () => Promise<void>;
}

/** Whether the CA has signed the certificate. */
export const isIssuedBy = (ca: string, cert: string): boolean =>
  cert !== '' && new X509Certificate(cert).verify(new X509Certificate(ca).publicKey);

/** Every member restarts twice, one after the other; no write fails twice; and at the end one CA bundle is left for each port. */
export async function survives(tenant: Tenant, name: string, { source, client, exchange }: Rotation): Promise<void> {
  await tenant.create(name, { replicas: 3, tls: source.tls });
  await source.give();
  await settled(tenant, name);
  await certificatesAre(tenant, name, 'True', 'Valid');
  const trustNow = async (): Promise<Readonly<Record<string, unknown>>> => {
    const { status } = (await tenant.get(KIND, name)) as AnObject & { readonly status?: { readonly trust?: object } };
    return { ...status?.trust };
  };
  const before = await trustNow();
  const material = await following(client);
  const served = await serving(tenant, name, { cluster: 'writer', tls: () => material() });
  const counted = count(tenant, name);
  served.writer.maxRetries();
  await exchange();
  // The status records the new CA a moment before the condition is written: the steps are reported before the rotation is over.
  const steps = new Set<string>();
  await eventually(
    'the CA rotation to be over, with three steps that are reported',
    async () => {
      const cluster = await tenant.get(KIND, name);
      const { reason = '', message = '' } = conditionOf(cluster, 'CertificatesValid') ?? {};
      for (const step of message.match(/step \d of 3/g) ?? []) steps.add(step);
      const trust = await trustNow();
      const exchanged = ETCD_PORTS.every((part) => trust[part] !== before[part]);
      return steps.size === 3 && reason === 'Valid' && exchanged ? true : undefined;
    },
    { timeoutMs: PATIENCE_MS, everyMs: POLL_MS, seen: () => [...steps] },
  );
  await settled(tenant, name);
  await served.writer.served();
  expect(served.writer.maxRetries()).toBeLessThanOrEqual(1);
  expect(await counted()).toEqual({ maxDown: 1, restarts: [2, 2, 2] });
  await eventually('Secrets with the previous CA bundle to be deleted', async () => {
    const names = (await tenant.list('secrets')).map(({ metadata }) => metadata.name);
    return names.filter((secret) => secret.includes('-trust-')).length === 2 ? true : undefined;
  });
  await served.endsWell(3);
}
