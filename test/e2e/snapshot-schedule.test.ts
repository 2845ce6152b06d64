/** Snapshots every minute: what is kept, the restore drill, and what the cluster reports. */

import { expect, test } from 'vitest';
import type { EtcdSnapshotScheduleStatus } from '../../src/api/etcd-snapshot-schedule.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { aTenant, becomes, conditionOf, KIND, type Tenant } from '../support/journeys/journey.ts';
import {
  Clusters,
  ENCRYPTION_KEY,
  KEY_SECRET,
  keyIn,
  restoredIs,
  SCHEDULE_KIND,
} from '../support/journeys/snapshots.ts';
import { aStore, opaque } from '../support/journeys/tenant-store.ts';
import { aWriter } from '../support/journeys/writer.ts';

const statusOf = async (tenant: Tenant, name: string): Promise<EtcdSnapshotScheduleStatus> =>
  ((await tenant.get(SCHEDULE_KIND, name)).status ?? {}) as EtcdSnapshotScheduleStatus;

test.runIf(process.env['DEV_TEST_ALL'])(
  'a schedule keeps the newest snapshot only, runs a restore drill, and the cluster reports the age of its backup',
  async () => {
    const tenant = await aTenant();
    const store = await aStore(tenant);
    await opaque(tenant, KEY_SECRET, { key: ENCRYPTION_KEY });
    const clusters = new Clusters(tenant, 'mTLS and auth');
    await clusters.begin('db', {});
    await clusters.serves('db');
    const writer = await aWriter(tenant, 'db', await clusters.access('db'));
    await store.files.write('minutes/foreign.db', 'theirs');
    const encryption = { keySecretRef: { name: KEY_SECRET } };
    await tenant.cluster.apply([
      {
        apiVersion: 'etcd-operator.cozystack.io/v1alpha2',
        kind: 'EtcdSnapshotSchedule',
        metadata: { name: 'minutes', namespace: tenant.namespace },
        spec: {
          clusterRef: { name: 'db' },
          schedule: '* * * * *',
          destination: store.at('minutes'),
          compression: 'Zstd',
          encryption,
          retention: { keepLast: 1 },
          recoveryPoint: '10m',
          drill: {},
        },
      },
    ]);
    await becomes('two snapshots to be stored', async () => {
      const { successes = 0, lastFailed } = await statusOf(tenant, 'minutes');
      expect(lastFailed).toBeUndefined();
      expect(successes).toBeGreaterThanOrEqual(2);
    });
    await tenant.kubectl('patch', SCHEDULE_KIND, 'minutes', '--type=merge', '-p', '{"spec":{"suspend":true}}');
    const { lastSuccessful } = await becomes('only the newest to be left, with a restore drill', async () => {
      const status = await statusOf(tenant, 'minutes');
      const newest = status.lastSuccessful?.name;
      expect(status.active ?? []).toEqual([]);
      expect(status.stored).toMatchObject({ kept: 1, for: newest });
      expect(status.lastDrill).toMatchObject({ succeeded: true, name: newest, hashCompared: true });
      return status;
    });
    if (!lastSuccessful) throw new Error('there is no last one');
    const key = keyIn(lastSuccessful.artifact);
    expect(await store.files.all()).toEqual([key, `${key}.manifest.json`, 'minutes/foreign.db'].toSorted());
    await becomes('the cluster to report that its backup is recent', async () => {
      expect(conditionOf(await tenant.get(KIND, 'db'), 'BackupFresh')).toMatchObject({ status: 'True' });
    });
    expect((await writer.end()).lost, ABOUT_DATA).toEqual([]);
    await clusters.begin('again', { bootstrap: { restore: { source: store.at(key), encryption } } });
    await restoredIs(tenant, 'again', 'True', 'Restored');
    await clusters.serves('again');
    await clusters.hasAllOf('again', 'db', lastSuccessful.artifact);
    await clusters.tellNobody();
  },
);
