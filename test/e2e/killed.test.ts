/** etcd processes that are killed, by signals and by the OOM killer: no member loses its volume because of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { crash } from '../../local/faults.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { UserClient } from '../support/etcd-client.ts';
import { settled } from '../support/journeys/at-rest.ts';
import { type AnObject, aTenant, becomes, KIND, MEMBER_KIND, type Tenant } from '../support/journeys/journey.ts';
import { aServingCluster } from '../support/journeys/serving.ts';
import { serviceIp } from '../support/journeys/writer.ts';

const uids = (objects: readonly AnObject[]): readonly string[] => objects.map((object) => object.metadata.uid).sort();

/** The volumes and members that exist, to be compared later. */
const kept = async (tenant: Tenant) => ({
  volumes: uids(await tenant.list('persistentvolumeclaims')),
  members: uids(await tenant.list(MEMBER_KIND)),
});

/** Every change of a member's Ready condition, and every replacement, creates an Event. */
async function judgedLost(tenant: Tenant): Promise<readonly string[]> {
  const events = (await tenant.list('events')) as readonly (AnObject & {
    readonly reason: string;
    readonly note?: string;
  })[];
  return events.map(({ reason }) => reason).filter((reason) => ['DataInvalid', 'ReplacingMember'].includes(reason));
}

test('members that are killed in turn keep their volumes', async () => {
  const tenant = await aTenant();
  const { endsWell } = await aServingCluster(tenant, 'turns', { replicas: 3 });
  const before = await kept(tenant);
  const names = (await tenant.list('pods')).map(({ metadata }) => metadata.name);
  // A member that has restarted before logs the lost connection to a killed peer, and is then killed itself.
  for (const name of [...names, ...names, ...names]) {
    await crash(tenant.cluster, tenant.namespace, name);
    await sleep(2_000);
  }
  await endsWell(3);
  expect(await judgedLost(tenant), ABOUT_DATA).toEqual([]);
  expect(await kept(tenant), ABOUT_DATA).toEqual(before);
});

test('members that are OOM-killed again and again keep their volumes, and the status names the limit', async () => {
  const tenant = await aTenant();
  const memory = '64Mi';
  await tenant.create('hungry', { replicas: 3, resources: { requests: { memory }, limits: { memory } } });
  await settled(tenant, 'hungry');
  const before = await kept(tenant);
  // etcd keeps the last entries of its log in memory, and reads them again when it starts.
  const stopped = new AbortController();
  onTestFinished(() => stopped.abort());
  const endpoint = `http://${await serviceIp(tenant, 'hungry')}:2379`;
  const load = async (): Promise<void> => {
    const value = 'x'.repeat(512 * 1024);
    for (let n = 0; !stopped.signal.aborted; n++) {
      const etcd = new UserClient(() => performance.now());
      const answer = await etcd.put({ endpoint, timeoutMs: 3_000 }, `large/${n % 64}`, value);
      etcd.close();
      if (!answer.ok) await sleep(200);
    }
  };
  const loads = [load(), load()];
  await becomes('all members to be OOM-killed three times', async () => {
    const pods = await tenant.list('pods');
    expect(pods.map(({ status }) => status?.containerStatuses?.[0]?.restartCount ?? 0).filter((n) => n < 3)).toEqual(
      [],
    );
  });
  await becomes('the status of a member to name the limit', async () => {
    const members = await tenant.list(MEMBER_KIND);
    const messages = members.flatMap(({ status }) => status?.conditions ?? []).map(({ message }) => message);
    expect(messages.join('\n')).toContain(`OOM-killed at its memory limit of ${memory}`);
  });
  await becomes('the status of the cluster to name the limit', async () => {
    const { status } = await tenant.get(KIND, 'hungry');
    const messages = (status?.conditions ?? []).map(({ message }) => message);
    expect(messages.join('\n')).toContain(`OOM-killed at its memory limit of ${memory}`);
  });
  stopped.abort();
  await Promise.all(loads);
  expect(await judgedLost(tenant), ABOUT_DATA).toEqual([]);
  expect(await kept(tenant), ABOUT_DATA).toEqual(before);
});
