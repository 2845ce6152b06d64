/** Clusters with auth enabled, on each minor of etcd, while an application with its own user writes. */
import { describe, expect, test } from 'vitest';
import { ETCD_VERSIONS, type EtcdMinor, etcdImageArchive } from '../../local/images.ts';
import { settled } from '../support/journeys/at-rest.ts';
import { Guarded } from '../support/journeys/auth.ts';
import { aTenant, becomes, conditionOf, KIND, type Tenant, testCluster } from '../support/journeys/journey.ts';
import { IN_MEMORY, serving } from '../support/journeys/serving.ts';
import { managed } from '../support/journeys/tls.ts';
import { replaceOne, resize } from '../support/journeys/tls-journey.ts';

const minors = Object.keys(ETCD_VERSIONS) as EtcdMinor[];
const inEveryRun: EtcdMinor = '3.6';

const saidOf = async (tenant: Tenant, name: string, type: string) => conditionOf(await tenant.get(KIND, name), type);

describe.each(minors)('etcd %s', (minor) => {
  const it = minor === inEveryRun ? test : test.runIf(process.env['DEV_TEST_ALL']);
  const begin = async (name: string): Promise<Guarded> => {
    const tenant = await aTenant();
    await (await testCluster()).load([await etcdImageArchive(minor)]);
    const guarded = new Guarded(tenant, name);
    const { tls } = managed(tenant, name);
    await tenant.create(name, { version: ETCD_VERSIONS[minor], tls, auth: guarded.auth, ...IN_MEMORY });
    return guarded;
  };

  it('auth is enabled when the password comes late, and the password is changed, lost and restored without locking clients out', async () => {
    const guarded = await begin('guarded');
    const { tenant, name } = guarded;
    expect(await guarded.is('False', 'AuthCredentialsMissing')).toContain(`Secret ${guarded.secret} does not exist`);
    expect(await tenant.list('pods')).toEqual([]);
    await guarded.give('planted-first');
    await guarded.is('True', 'Enabled');
    await settled(tenant, name);
    await guarded.letsIn('planted-first'); // the nodes program a Service a moment after the cluster is available
    expect([await guarded.put(), await guarded.put('guess'), await guarded.put('planted-first')]).toEqual([
      'permissionDenied',
      'authFailed',
      'ok',
    ]);
    const served = await serving(tenant, name, await guarded.application('planted-first'));
    await resize(tenant, name, 3);
    await replaceOne(tenant);
    await settled(tenant, name);

    await guarded.change('planted-second');
    await guarded.letsIn('planted-second');
    await guarded.is('True', 'Enabled');
    expect(await guarded.put('planted-first')).toBe('authFailed');

    await guarded.take();
    await guarded.is('True', 'AuthCredentialsMissing');
    await replaceOne(tenant); // with the password that the operator has kept
    await settled(tenant, name);
    await guarded.change('planted-second');
    await guarded.is('True', 'Enabled');

    await guarded.does('planted-second', (auth, ask) => auth.changePassword(ask, 'root', 'planted-by-hand'));
    await guarded.change('planted-wrong');
    expect(await guarded.is('True', 'AuthCredentialsRejected')).toContain(`Secret ${guarded.secret}`);
    expect(await saidOf(tenant, name, 'Available')).toMatchObject({ status: 'True' });
    expect(await saidOf(tenant, name, 'Degraded')).toMatchObject({ status: 'True', reason: 'AuthCredentialsRejected' });
    await served.writer.served();
    await guarded.give('planted-by-hand');
    await guarded.is('True', 'Enabled');
    await guarded.reportsNoPassword();
    await served.endsWell(3);
  });

  it('a root user that exists with another password or with none gets the given one before auth is enabled', async () => {
    const guarded = await begin('taken');
    const { tenant, name } = guarded;
    await guarded.give('planted-first');
    await guarded.is('True', 'Enabled');
    await resize(tenant, name, 3);
    for (const theirs of ['planted-theirs', undefined]) {
      // The operator may reconcile meanwhile, and repair everything.
      await becomes('a root user of another administrator', () =>
        guarded.does(
          'planted-first',
          (auth, ask) => auth.disable(ask),
          (auth, ask) => auth.deleteUser(ask, 'root'),
          (auth, ask) => auth.addUser(ask, 'root', theirs),
          (auth, ask) => auth.grantRole(ask, 'root', 'root'),
        ),
      );
      await guarded.change('planted-first');
      await becomes('auth to be enabled again', async () => expect(await guarded.put()).toBe('permissionDenied'));
      await guarded.letsIn('planted-first');
      await guarded.is('True', 'Enabled');
    }
    await settled(tenant, name);
  });
});
