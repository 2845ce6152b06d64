/** Clusters with TLS: with Secrets of the user and with certificates of the operator, while a client with a certificate writes. */
import { describe, expect, test } from 'vitest';
import { settled } from '../support/journeys/at-rest.ts';
import { aTenant, conditionOf, type Tenant } from '../support/journeys/journey.ts';
import { IN_MEMORY, type Serving, serving } from '../support/journeys/serving.ts';
import {
  accessWith,
  certificatesAre,
  managed,
  mountedNow,
  nudge,
  nudgeKubelets,
  type OwnSecrets,
  onlyLetsIn,
  ownSecrets,
  type Source,
  secretText,
  shownByMembers,
  type Text,
} from '../support/journeys/tls.ts';
import {
  areMounted,
  atOnce,
  changes,
  encryptsInside,
  isRenewed,
  replaceOne,
  servesOneWay,
  threeServing,
} from '../support/journeys/tls-journey.ts';

const DAY = 24 * 60 * 60_000;

/** A wrong Secret is named, nothing else happens, and the cluster is healthy as soon as it is fixed. */
async function doesNotMind(
  tenant: Tenant,
  name: string,
  source: Source,
  { writer }: Serving,
  wrong: {
    readonly make: () => Promise<unknown>;
    readonly reason: string;
    readonly says: string;
    readonly putRight: () => Promise<unknown>;
  },
): Promise<void> {
  const client = await source.client();
  const before = await shownByMembers(tenant, name, client);
  writer.maxRetries();
  await wrong.make();
  await nudge(tenant, name);
  expect(await certificatesAre(tenant, name, 'False', wrong.reason)).toContain(wrong.says);
  await nudgeKubelets(tenant, name);
  await writer.served();
  expect(conditionOf(await settled(tenant, name), 'Available')).toMatchObject({ status: 'True' });
  expect(await shownByMembers(tenant, name, client)).toEqual(before);
  await wrong.putRight();
  await certificatesAre(tenant, name, 'True', 'Valid');
  expect(writer.maxRetries()).toBeLessThanOrEqual(1);
}

const wrongs = (own: OwnSecrets, tenant: Tenant) => {
  const good: Record<string, Text> = {};
  const put = async (secret: string, change: (text: Text) => Promise<Text> | Text): Promise<void> => {
    good[secret] = await secretText(tenant, secret);
    await own.put(secret, await change(good[secret]));
  };
  const back = (secret: string) => (): Promise<void> => own.put(secret, good[secret] ?? {});
  return {
    expired: {
      make: () => put(own.server, () => own.leaf({}, Date.now() - 91 * DAY)),
      reason: 'Expired',
      says: `tls.crt of Secret ${own.server} has expired on `,
      putRight: back(own.server),
    },
    deleted: {
      make: async () => {
        good[own.peer] = await secretText(tenant, own.peer);
        await tenant.kubectl('delete', 'secret', own.peer);
      },
      reason: 'SecretMissing',
      says: `Secret ${own.peer} does not exist`,
      putRight: back(own.peer),
    },
    otherKey: {
      make: () => put(own.server, async (text) => ({ ...text, 'tls.key': (await own.leaf())['tls.key'] ?? '' })),
      reason: 'KeyMismatch',
      says: `tls.key of Secret ${own.server} does not match the certificate`,
      putRight: back(own.server),
    },
    noKey: {
      make: () => put(own.peer, (text) => ({ ...text, 'tls.key': '' })),
      reason: 'KeyMissing',
      says: `Secret ${own.peer} has no tls.key`,
      putRight: back(own.peer),
    },
    noName: {
      make: () => put(own.peer, () => own.leaf({ hosts: ['localhost'] })),
      reason: 'NameMissing',
      says: `Secret ${own.peer} lacks `,
      putRight: back(own.peer),
    },
  };
};

describe('Secrets of the user', () => {
  test('that come late bootstrap a cluster, renewed ones reach it without a restart, and wrong ones do not', async () => {
    const tenant = await aTenant();
    const own = await ownSecrets(tenant, 'own');
    await tenant.create('own', { replicas: 3, tls: own.tls, ...IN_MEMORY });
    expect(await certificatesAre(tenant, 'own', 'False', 'SecretMissing')).toContain(
      `Secret ${own.server} does not exist`,
    );
    expect(await tenant.list('pods')).toEqual([]);
    await own.give();
    await settled(tenant, 'own');
    await certificatesAre(tenant, 'own', 'True', 'Valid');
    await onlyLetsIn(tenant, 'own', await own.client());
    const served = await serving(tenant, 'own', accessWith('writer', await own.client()));
    await isRenewed(tenant, 'own', own, served, () => atOnce(tenant, 'own', own));
    const { expired, deleted } = wrongs(own, tenant);
    await doesNotMind(tenant, 'own', own, served, expired);
    await doesNotMind(tenant, 'own', own, served, deleted);
    await served.endsWell(3);
  });

  test.runIf(process.env['DEV_TEST_ALL'])(
    'are enough for scaling and replacing, and everything that can be wrong with them is reported and recovers',
    async () => {
      const tenant = await aTenant();
      const own = await ownSecrets(tenant, 'own');
      const served = await threeServing(tenant, 'own', own);
      await changes(tenant, 'own');
      for (const wrong of Object.values(wrongs(own, tenant))) await doesNotMind(tenant, 'own', own, served, wrong);
      await served.endsWell(3);
    },
  );

  test.runIf(process.env['DEV_TEST_ALL'])(
    'that are renewed reach members within minutes, without any other action',
    async () => {
      const tenant = await aTenant();
      const own = await ownSecrets(tenant, 'own');
      const served = await threeServing(tenant, 'own', own);
      await isRenewed(tenant, 'own', own, served, async () => {
        const before = await mountedNow(tenant, 'own');
        await own.renew();
        await areMounted(tenant, 'own', before);
      });
      await served.endsWell(3);
    },
  );
});

describe('certificates of the operator', () => {
  test('serve clients that have one, and are renewed without a restart; a member is replaced meanwhile', async () => {
    const tenant = await aTenant();
    const source = managed(tenant, 'one-line');
    const served = await threeServing(tenant, 'one-line', source);
    await onlyLetsIn(tenant, 'one-line', await source.client());
    await isRenewed(tenant, 'one-line', source, served, () => atOnce(tenant, 'one-line', source));
    await replaceOne(tenant);
    await served.endsWell(3);
  });

  test('without client certificates: every client with the CA is served, and none without TLS', async () => {
    const tenant = await aTenant();
    await tenant.create('one-way', { tls: { client: { managed: { clientCertificates: 'None' } } }, ...IN_MEMORY });
    await tenant.available('one-way');
    const { 'ca.crt': ca = '' } = await secretText(tenant, 'one-way-server-mounted');
    await onlyLetsIn(tenant, 'one-way', { ca, serverName: `one-way-client.${tenant.namespace}.svc` });
  });

  test.runIf(process.env['DEV_TEST_ALL'])('are renewed in time, and are enough for scaling and replacing', async () => {
    const tenant = await aTenant();
    const source = managed(tenant, 'hourly', { duration: '1h', renewBefore: '55m' });
    const served = await threeServing(tenant, 'hourly', source);
    const before = await mountedNow(tenant, 'hourly');
    await isRenewed(tenant, 'hourly', source, served, async () => {
      await areMounted(tenant, 'hourly', before);
      await nudgeKubelets(tenant, 'hourly');
    });
    await changes(tenant, 'hourly');
    await served.endsWell(3);
  });
});

describe.each<[string, (tenant: Tenant, name: string) => Promise<Source> | Source]>([
  ['Secrets of the user', ownSecrets],
  ['certificates of the operator', managed],
])('%s, for one port only', (_, source) => {
  test.runIf(process.env['DEV_TEST_ALL'])('that of clients, which have no certificate', async () => {
    const tenant = await aTenant();
    await servesOneWay(tenant, 'one-way', await source(tenant, 'one-way'));
  });

  test.runIf(process.env['DEV_TEST_ALL'])('that of the peers', async () => {
    const tenant = await aTenant();
    await encryptsInside(tenant, 'inside', await source(tenant, 'inside'));
  });
});
