/** Clusters whose certificates come from cert-manager, whose real controllers run beside the nodes, as an administrator. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TlsMaterial } from '../../src/etcd/transport.ts';
import {
  type CertManager,
  certManagerDefinitions,
  fromCertManager,
  renewOne,
  startCertManager,
} from '../support/cert-manager.ts';
import {
  accessWith,
  certificatesAre,
  clientOf,
  mountedNow,
  nudgeKubelets,
  onlyLetsIn,
  secretText,
  shownByMembers,
} from '../support/encrypted.ts';
import { areMounted, isRenewed, replaceOne, threeServing } from '../support/encrypted-journey.ts';
import { aTenant, becomes, MEMBER_KIND, type Tenant, testCluster } from '../support/journey.ts';
import { settled } from '../support/rest.ts';
import { isIssuedBy, PATIENCE_MS, survives } from '../support/rotation-journey.ts';
import { IN_MEMORY, type Serving, serving } from '../support/serving.ts';

let certManager: CertManager | undefined;

beforeAll(async () => {
  const cluster = await testCluster();
  const definitions = await certManagerDefinitions();
  await cluster.apply(definitions);
  const names = definitions.map(({ metadata }) => `crd/${metadata.name}`);
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', ...names]);
  certManager = await startCertManager(cluster.kubeconfig);
}, 1_200_000); // it may have to be built
afterAll(async () => {
  await certManager?.stop();
});

/** To five members and back to three, and one is replaced. */
async function changes(tenant: Tenant, name: string): Promise<void> {
  for (const replicas of [5, 3]) {
    await tenant.edit(name, { replicas });
    await settled(tenant, name);
    expect(await tenant.list(MEMBER_KIND)).toHaveLength(replicas);
  }
  await replaceOne(tenant);
  await settled(tenant, name);
}

describe('certificates of cert-manager', () => {
  test('everybody shows one: it grows, shrinks, is repaired, and is renewed without a restart while a client writes', async () => {
    const tenant = await aTenant();
    const source = fromCertManager(tenant, 'mutual');
    const served = await threeServing(tenant, 'mutual', source);
    await onlyLetsIn(tenant, 'mutual', await source.client());
    await changes(tenant, 'mutual');
    await isRenewed(tenant, 'mutual', source, served, async () => {
      const before = await mountedNow(tenant, 'mutual');
      await source.renew(); // cert-manager tells of it: nobody has to edit anything
      await areMounted(tenant, 'mutual', before);
      await nudgeKubelets(tenant, 'mutual');
    });
    await served.endsWell(3);
  });

  test('server TLS only: whoever trusts the issuer is served, and nobody without encryption', async () => {
    const tenant = await aTenant();
    const { give, tls } = fromCertManager(tenant, 'one-way');
    const { serverIssuerRef } = (tls['client'] as { certManager: { serverIssuerRef: object } }).certManager;
    await give();
    await tenant.create('one-way', {
      replicas: 3,
      tls: { client: { certManager: { serverIssuerRef } } },
      ...IN_MEMORY,
    });
    await settled(tenant, 'one-way');
    await certificatesAre(tenant, 'one-way', 'True', 'Valid');
    const { 'ca.crt': ca = '' } = await secretText(tenant, 'one-way-server-mounted');
    const client = { ca, serverName: `one-way-client.${tenant.namespace}.svc` };
    await onlyLetsIn(tenant, 'one-way', client);
    const served: Serving = await serving(tenant, 'one-way', accessWith('writer', client));
    await changes(tenant, 'one-way');
    await served.endsWell(3);
  });

  test('TLS among members only: no key of theirs is needed by clients, and members show theirs', async () => {
    const tenant = await aTenant();
    const { give, tls } = fromCertManager(tenant, 'inside');
    await tenant.create('inside', { replicas: 3, tls: { peer: tls['peer'] }, ...IN_MEMORY });
    expect(await certificatesAre(tenant, 'inside', 'False', 'CertificateNotReady')).toContain('"ca" not found');
    expect(await tenant.list('pods')).toEqual([]);
    await give();
    await settled(tenant, 'inside');
    const served = await serving(tenant, 'inside');
    await changes(tenant, 'inside');
    const peer = await secretText(tenant, 'inside-peer-tls');
    const shown = await shownByMembers(tenant, 'inside', { ca: peer['ca.crt'] ?? '' });
    expect(new Set(shown.map((member) => member.peer)).size).toBe(1);
    expect(shown[0]?.peer).toEqual(expect.any(String));
    await served.endsWell(3);
  });

  test('of another authority reach members on volumes in order, while a client writes', {
    timeout: 2 * PATIENCE_MS,
  }, async () => {
    const tenant = await aTenant();
    const name = 'turned';
    const rootOf = async (): Promise<string> => (await secretText(tenant, 'ca-root'))['tls.crt'] ?? '';
    let old: TlsMaterial | undefined;
    await survives(tenant, name, {
      source: fromCertManager(tenant, name),
      client: async () => {
        old ??= await clientOf(tenant, name);
        const fresh = await rootOf();
        const { 'tls.crt': shown = '' } = await secretText(tenant, `${name}-server-mounted`);
        const own = isIssuedBy(fresh, shown) ? await clientOf(tenant, name) : old;
        return { ...own, ca: `${old.ca}${fresh}` };
      },
      exchange: async () => {
        const before = await rootOf();
        await renewOne(tenant, 'ca-root');
        await becomes('another authority', async () => expect(await rootOf()).not.toBe(before));
        for (const role of ['server', 'peer', 'operator-client', 'client']) await renewOne(tenant, `${name}-${role}`);
      },
    });
  });
});
