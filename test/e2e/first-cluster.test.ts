/** The journey of a new user: create, use, break, delete; and what admission refuses. */

import { describe, expect, test } from 'vitest';
import { ABOUT_DATA } from '../support/about-data.ts';
import { aTenant, becomes, conditionOf, KIND, MEMBER_KIND } from '../support/journeys/journey.ts';

describe('a single-member cluster', () => {
  test('is created, accepts a key through its Service, and reports it in its status', async () => {
    const tenant = await aTenant();
    await tenant.create('first');
    const cluster = await tenant.available('first');

    expect(cluster.status?.clusterID).toMatch(/^[0-9a-f]{16}$/);
    expect(await tenant.served('first', 'put', 'a', '1')).toBe('OK');
    expect(await tenant.etcdctl('first', 'get', 'a', '--print-value-only'), ABOUT_DATA).toBe('1');
    await becomes('the status to report that all is well', async () => {
      const settled = await tenant.get(KIND, 'first');
      expect(conditionOf(settled, 'Available')).toMatchObject({ status: 'True', reason: 'QuorumHealthy' });
      expect(conditionOf(settled, 'Progressing')).toMatchObject({ status: 'False', reason: 'Reconciled' });
      expect(conditionOf(settled, 'Degraded')).toMatchObject({ status: 'False' });
      expect(settled.status?.readyMembers).toBe(1);
    });
    const [member] = await tenant.list(MEMBER_KIND);
    expect(member?.metadata.name).toMatch(/^first-[a-z0-9]{5}$/);
    const id = String(member?.status?.memberID).replace(/^0+/, ''); // etcdctl omits leading zeros
    expect(await tenant.etcdctl('first', 'member', 'list')).toContain(`${id}, started`);
  });

  test('gets its Pod back with its data after the Pod was deleted', async () => {
    const tenant = await aTenant();
    await tenant.create('phoenix');
    const before = await tenant.available('phoenix');
    await tenant.served('phoenix', 'put', 'kept', 'yes');
    const [pod] = await tenant.list('pods');
    await tenant.kubectl('delete', 'pod', pod?.metadata.name ?? '', '--wait=true');

    await becomes('the key to be there', async () =>
      expect(await tenant.etcdctl('phoenix', 'get', 'kept', '--print-value-only'), ABOUT_DATA).toBe('yes'),
    );
    const after = await tenant.available('phoenix');
    expect(after.status?.clusterID).toBe(before.status?.clusterID);
    expect((await tenant.list('pods'))[0]?.metadata.uid).not.toBe(pod?.metadata.uid);
  });

  test('leaves nothing behind when it is deleted', async () => {
    const tenant = await aTenant();
    await tenant.create('deleted');
    await tenant.available('deleted');
    const [claim] = await tenant.list('pvc');
    const volume = String(claim?.spec['volumeName']);
    await tenant.kubectl('delete', KIND, 'deleted', '--wait=true');

    await becomes('nothing to be left', async () => {
      for (const kind of [MEMBER_KIND, 'pods', 'pvc', 'services']) expect(await tenant.list(kind)).toEqual([]);
      expect(await tenant.kubectl('get', 'pv', '-o', 'name')).not.toContain(volume);
    });
  });

  test('keeps its data when its only member is deleted: another one takes over', async () => {
    const tenant = await aTenant();
    await tenant.create('lost');
    const before = await tenant.available('lost');
    await tenant.served('lost', 'put', 'kept', 'yes');
    const [member] = await tenant.list(MEMBER_KIND);
    const name = member?.metadata.name ?? '';
    await expect(tenant.kubectl('delete', MEMBER_KIND, name)).rejects.toThrow(/allow-deletion/);
    await tenant.kubectl('annotate', MEMBER_KIND, name, 'etcd-operator.cozystack.io/allow-deletion=true');
    await tenant.kubectl('delete', MEMBER_KIND, name, '--wait=true');

    await becomes('another member to be the only one', async () => {
      const cluster = await tenant.get(KIND, 'lost');
      expect(conditionOf(cluster, 'Progressing')).toMatchObject({ status: 'False', reason: 'Reconciled' });
      expect(cluster.status?.clusterID).toBe(before.status?.clusterID);
      expect((await tenant.list(MEMBER_KIND)).map((m) => m.metadata.name === name)).toEqual([false]);
    });
    expect(await tenant.served('lost', 'get', 'kept', '--print-value-only'), ABOUT_DATA).toBe('yes');
  });
});

describe('what the API server refuses, with a helpful message', () => {
  test.each([
    ['a name that is too long for its members', 'a'.repeat(57), {}, /56/],
    ['a name that cannot be a Service', '1st', {}, /name/],
    ['a volume of no size', 'empty', { storage: { size: '0' } }, /size/],
    ['a version that is not one', 'odd', { version: 'latest' }, /version/],
  ])('%s', async (_what, name, spec, sentence) => {
    const tenant = await aTenant();
    await expect(tenant.create(name, spec)).rejects.toThrow(sentence);
  });
});

test('a quota larger than the volume is accepted, works, and is named in a condition', async () => {
  const tenant = await aTenant();
  await tenant.create('greedy', { options: { quotaBackendBytes: 9e9 } });
  const cluster = await tenant.available('greedy');
  expect(conditionOf(cluster, 'QuotaFitsVolume')).toMatchObject({ status: 'False', reason: 'QuotaExceedsVolume' });
});
