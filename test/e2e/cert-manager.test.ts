/** Clusters whose certificates come from cert-manager, whose real controllers run beside the nodes, as an administrator. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TlsMaterial } from '../../src/etcd/transport.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { settled } from '../support/journeys/at-rest.ts';
import { aTenant, becomes, conditionOf, KIND, testCluster } from '../support/journeys/journey.ts';
import { rewrites } from '../support/journeys/rewriting-policy.ts';
import { isIssuedBy, PATIENCE_MS, survives } from '../support/journeys/rotation-journey.ts';
import {
  certificatesAre,
  clientOf,
  mountedNow,
  nudgeKubelets,
  onlyLetsIn,
  secretText,
} from '../support/journeys/tls.ts';
import {
  areMounted,
  changes,
  encryptsInside,
  isRenewed,
  replaceOne,
  servesOneWay,
  threeServing,
} from '../support/journeys/tls-journey.ts';
import {
  type CertManager,
  certManagerDefinitions,
  fromCertManager,
  renewOne,
  startCertManager,
} from '../support/servers/cert-manager.ts';

let certManager: CertManager | undefined;

beforeAll(async () => {
  const cluster = await testCluster();
  const definitions = await certManagerDefinitions();
  await cluster.apply(definitions);
  const names = definitions.map(({ metadata }) => `crd/${metadata.name}`);
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', ...names]);
  certManager = await startCertManager(cluster.kubeconfig);
}, 1_200_000); // cert-manager may have to be built
afterAll(async () => {
  await certManager?.stop();
});

describe('certificates of cert-manager', () => {
  test('mutual TLS: it scales up and down, is repaired, and is renewed without a restart while a client writes', async () => {
    const tenant = await aTenant();
    const source = fromCertManager(tenant, 'mutual');
    const served = await threeServing(tenant, 'mutual', source);
    await onlyLetsIn(tenant, 'mutual', await source.client());
    await changes(tenant, 'mutual');
    await isRenewed(tenant, 'mutual', source, served, async () => {
      const before = await mountedNow(tenant, 'mutual');
      await source.renew(); // cert-manager updates the Secret: no user has to edit anything
      await areMounted(tenant, 'mutual', before);
      await nudgeKubelets(tenant, 'mutual');
    });
    await served.endsWell(3);
  });

  test('an admission policy rewrites labels, the PodDisruptionBudget and Certificates: the cluster forms, is repaired, and a condition names the fields', async () => {
    const tenant = await aTenant();
    await rewrites(tenant);
    const additionalMetadata = { labels: { team: 'ours' } };
    const source = fromCertManager(tenant, 'rewritten');
    const { writer } = await threeServing(tenant, 'rewritten', source, { additionalMetadata });
    await becomes('the condition to name the fields', async () => {
      const condition = conditionOf(await tenant.get(KIND, 'rewritten'), 'ManagedObjectsInSync');
      expect(condition).toMatchObject({ status: 'False', reason: 'Overwritten' });
      const { message } = condition ?? {};
      expect(message).toMatch(/Service rewritten: [^;]*metadata\.labels\.team/);
      expect(message).toMatch(/PodDisruptionBudget rewritten: [^;]*spec\.minAvailable/);
      expect(message).toMatch(/Certificate rewritten-server: [^;]*spec\.privateKey/);
    });
    await replaceOne(tenant);
    await settled(tenant, 'rewritten');
    expect((await writer.end()).lost, ABOUT_DATA).toEqual([]);
  });

  test.runIf(process.env['DEV_TEST_ALL'])(
    'server TLS only: every client with the issuer’s CA is served, and none without TLS',
    async () => {
      const tenant = await aTenant();
      await servesOneWay(tenant, 'one-way', fromCertManager(tenant, 'one-way'));
    },
  );

  test.runIf(process.env['DEV_TEST_ALL'])(
    'TLS between peers only: clients need no certificate, and members serve theirs to peers',
    async () => {
      const tenant = await aTenant();
      const source = fromCertManager(tenant, 'inside');
      const give = async (): Promise<void> => {
        expect(await certificatesAre(tenant, 'inside', 'False', 'CertificateNotReady')).toContain('"ca" not found');
        expect(await tenant.list('pods')).toEqual([]);
        await source.give();
      };
      await encryptsInside(tenant, 'inside', { ...source, give });
    },
  );

  test.runIf(process.env['DEV_TEST_ALL'])(
    'of another CA reach members on volumes in order, while a client writes',
    {
      timeout: 2 * PATIENCE_MS,
    },
    async () => {
      const tenant = await aTenant();
      const name = 'turned';
      const rootOf = async (): Promise<string> => (await secretText(tenant, 'ca-root'))['tls.crt'] ?? '';
      let old: TlsMaterial | undefined;
      await survives(tenant, name, {
        source: fromCertManager(tenant, name),
        client: async () => {
          old ??= await clientOf(tenant, name);
          const fresh = await rootOf();
          const { 'tls.crt': served = '' } = await secretText(tenant, `${name}-server-mounted`);
          const own = isIssuedBy(fresh, served) ? await clientOf(tenant, name) : old;
          return { ...own, ca: `${old.ca}${fresh}` };
        },
        exchange: async () => {
          const before = await rootOf();
          await renewOne(tenant, 'ca-root');
          await becomes('another CA', async () => expect(await rootOf()).not.toBe(before));
          for (const role of ['server', 'peer', 'operator-client', 'client']) await renewOne(tenant, `${name}-${role}`);
        },
      });
    },
  );
});
