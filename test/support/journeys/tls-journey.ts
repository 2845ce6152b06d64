/** What every cluster with TLS goes through, wherever its certificates come from. */
import { expect } from 'vitest';
import { eventually } from '../servers/processes.ts';
import { settled } from './at-rest.ts';
import { becomes, MEMBER_KIND, type Tenant } from './journey.ts';
import { IN_MEMORY, type Serving, serving } from './serving.ts';
import {
  accessWith,
  certificatesAre,
  type Mounted,
  mountedNow,
  nudge,
  nudgeKubelets,
  onlyLetsIn,
  type Source,
  secretText,
  shownByMembers,
} from './tls.ts';

/** A cluster of three that serves a client with a certificate. */
export async function threeServing(tenant: Tenant, name: string, source: Source, spec = {}): Promise<Serving> {
  await tenant.create(name, { replicas: 3, tls: source.tls, ...IN_MEMORY, ...spec });
  await source.give();
  await settled(tenant, name);
  await certificatesAre(tenant, name, 'True', 'Valid');
  return serving(tenant, name, accessWith('writer', await source.client()));
}

/** A user deletes one member, and another replaces it. */
export async function replaceOne(tenant: Tenant): Promise<void> {
  const [member] = await tenant.list(MEMBER_KIND);
  const name = member?.metadata.name ?? '';
  await tenant.kubectl('annotate', MEMBER_KIND, name, 'etcd-operator.cozystack.io/allow-deletion=true');
  await tenant.kubectl('delete', MEMBER_KIND, name, '--wait=false');
  await becomes(`${name} to be replaced`, async () => {
    const names = (await tenant.list(MEMBER_KIND)).map(({ metadata }) => metadata.name);
    expect(names).toHaveLength(3);
    expect(names).not.toContain(name);
  });
}

export async function resize(tenant: Tenant, name: string, replicas: number): Promise<void> {
  await tenant.edit(name, { replicas });
  await settled(tenant, name);
  expect(await tenant.list(MEMBER_KIND)).toHaveLength(replicas);
}

/** Scales to five members and back to three, and replaces one. */
export async function changes(tenant: Tenant, name: string): Promise<void> {
  for (const replicas of [5, 3]) await resize(tenant, name, replicas);
  await replaceOne(tenant);
  await settled(tenant, name);
}

/** Server TLS only: every client with the CA is served, and none without TLS. */
export async function servesOneWay(tenant: Tenant, name: string, { oneWay, give }: Source): Promise<void> {
  await tenant.create(name, { replicas: 3, tls: { client: oneWay }, ...IN_MEMORY });
  await give();
  await settled(tenant, name);
  await certificatesAre(tenant, name, 'True', 'Valid');
  const { 'ca.crt': ca = '' } = await secretText(tenant, `${name}-server-mounted`);
  const client = { ca, serverName: `${name}-client.${tenant.namespace}.svc` };
  await onlyLetsIn(tenant, name, client);
  const served = await serving(tenant, name, accessWith('writer', client));
  await changes(tenant, name);
  await served.endsWell(3);
}

/** TLS between peers only: clients need no certificate, and members serve theirs to peers. */
export async function encryptsInside(tenant: Tenant, name: string, { tls, give }: Source): Promise<void> {
  await tenant.create(name, { replicas: 3, tls: { peer: tls['peer'] }, ...IN_MEMORY });
  await give();
  await settled(tenant, name);
  const served = await serving(tenant, name);
  await changes(tenant, name);
  const { 'ca.crt': ca = '' } = await secretText(tenant, `${name}-peer-mounted`);
  const shown = await shownByMembers(tenant, name, { ca });
  expect(new Set(shown.map((member) => member.peer)).size).toBe(1);
  expect(shown[0]?.peer).toEqual(expect.any(String));
  await served.endsWell(3);
}

/** All members serve other certificates than before, none was restarted, and no write failed twice. */
export async function isRenewed(
  tenant: Tenant,
  name: string,
  source: Source,
  { writer }: Serving,
  renew: () => Promise<void>,
): Promise<void> {
  const client = await source.client();
  const [before, running] = [await mountedNow(tenant, name), await shownByMembers(tenant, name, client)];
  expect(running).toEqual(running.map(({ pod }) => ({ pod, ...before })));
  writer.maxRetries();
  await renew();
  await becomes('every member to serve the new certificates', async () => {
    const after = await mountedNow(tenant, name);
    expect([after.client === before.client, after.peer === before.peer]).toEqual([false, false]);
    expect(await shownByMembers(tenant, name, client)).toEqual(running.map(({ pod }) => ({ pod, ...after })));
  });
  await certificatesAre(tenant, name, 'True', 'Valid');
  await writer.served();
  expect(writer.maxRetries()).toBeLessThanOrEqual(1);
}

/** Other certificates are in the Secrets that members mount; the operator reads Secrets every five minutes. */
export const areMounted = (tenant: Tenant, name: string, before: Mounted): Promise<true> =>
  eventually(
    'other certificates to be mounted',
    async () => {
      const { client, peer } = await mountedNow(tenant, name);
      return (client !== before.client && peer !== before.peer) || undefined;
    },
    { timeoutMs: 400_000, everyMs: 500 },
  );

export const atOnce = async (tenant: Tenant, name: string, source: Source): Promise<void> => {
  const before = await mountedNow(tenant, name);
  await source.renew();
  await nudge(tenant, name);
  await areMounted(tenant, name, before);
  await nudgeKubelets(tenant, name);
};
