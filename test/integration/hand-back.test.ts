/** Back to the Go operator: what `kubectl etcd hand-back` leaves is what its controllers check, and its Pods find their data. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { API_VERSION, volumeClaimName } from '../../src/api/names.ts';
import { controllerOf } from '../../src/domain/ownership.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { persistentVolumeClaims, pods, secrets } from '../../src/kube/resources.ts';
import { createCA, issue, type KeyPair } from '../../src/pki/issue.ts';
import { systemKeySource } from '../../src/pki/key-source.ts';
import { buildScript } from '../../tools/plugin/build.ts';
import { run } from '../../tools/process.ts';
import { memberPod } from '../support/journeys/go-manifests.ts';
import { removeFolder } from '../support/kubelet/pod-run.ts';
import { leftByGo } from '../support/servers/go-world.ts';
import { type Child, eventually, pause } from '../support/servers/processes.ts';
import { clusters, members, startWorld, type World } from '../support/servers/world.ts';

const PATIENCE_MS = 120_000;
const folder = mkdtempSync(join(tmpdir(), 'hand-back-'));
let world: World;
let script: string;
let operator: Child | undefined;

beforeAll(async () => {
  [world, script] = await Promise.all([startWorld(), buildScript(folder)]);
}, 4 * PATIENCE_MS);
afterAll(async () => {
  await world?.stop();
  removeFolder(folder);
});
afterEach(async (context) => {
  if (context.task.result?.state === 'fail') process.stderr.write(operator?.log().slice(-10_000) ?? '');
  await operator?.stop('SIGKILL');
});

const handBack = (namespace: string, ...args: readonly string[]) =>
  run(
    process.execPath,
    [script, '--kubeconfig', world.apiServer.kubeconfig, 'hand-back', 'db', '-n', namespace, ...args],
    { allowFailure: true },
  );

async function secret(namespace: string, name: string, ca: KeyPair): Promise<void> {
  const hosts = [`*.db.${namespace}.svc`, `*.db.${namespace}.svc.cluster.local`, `db-client.${namespace}.svc`];
  const usages = ['server auth', 'client auth'] as const;
  const asked = { name: 'x', hosts, usages, durationMs: 90 * 24 * 60 * 60_000 };
  const { cert, key } = await issue(ca, asked, Date.now(), systemKeySource);
  const data = Object.fromEntries(
    Object.entries({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca.cert }).map(([at, text]) => [
      at,
      Buffer.from(text).toString('base64'),
    ]),
  );
  await world.admin.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, data });
}
const identities = async (namespace: string): Promise<readonly string[]> =>
  (await world.list(pods, namespace)).map(({ metadata }) => `${metadata.name} ${metadata.uid}`).toSorted();

test(
  'owner references and names of Secrets are put back, a Pod as the Go operator creates it finds its data, and a later upgrade takes over again',
  async () => {
    const namespace = await world.namespace();
    const ca = await createCA('ca', Date.now(), systemKeySource);
    for (const name of ['server', 'peer']) await secret(namespace, name, ca);
    const tls = { client: { serverSecretRef: { name: 'server' } }, peer: { secretRef: { name: 'peer' } } };
    const go = { name: 'db', members: ['db-x7k2p', 'db-b4m9q'], tls: { server: 'server', peer: 'peer' } };
    const accessTo = (member: string) => ({
      cluster: `${namespace}/${member}`,
      tls: () => ({ ca: ca.cert, serverName: `${member}.db.${namespace}.svc` }),
    });
    await leftByGo({ world, namespace, cluster: go, access: accessTo }, { tls });
    operator = world.startOperator();
    await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');
    // A member of this operator: it names copies of the Secrets.
    await world.admin.patch(clusters, { namespace, name: 'db' }, { spec: { replicas: 3, suspend: false } });
    await eventually('three members', async () =>
      (await world.list(members, namespace)).length === 3 ? true : undefined,
    );
    await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Progressing', 'False', 'Reconciled');

    const early = await handBack(namespace, '--yes');
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining('this operator still runs')]);

    await operator.stop('SIGKILL'); // its release is rolled back; the names of the Secrets are put back already
    const before = await identities(namespace);
    const planned = await handBack(namespace, '--dry-run');
    expect(planned.stderr).toMatch(/^would change 3 objects of 1 clusters for the Go operator\n/);
    expect(planned.stdout).toContain(`${namespace}/db: the owner references of 3 PersistentVolumeClaims to put back`);
    expect(planned.stdout).toContain('mount copies of its Secrets');
    expect(planned.stdout).toContain('without effect under the Go operator: suspend');
    const done = await handBack(namespace, '--yes');
    expect([done.code, done.stderr]).toEqual([0, 'done: the Go operator has what it needs\n']);
    expect((await handBack(namespace, '--yes')).stdout).toContain(`${namespace}/db: nothing to put back`);
    expect(await identities(namespace)).toEqual(before);

    // What its member controller checks before it creates a Pod.
    const found = await world.list(members, namespace);
    for (const { metadata, spec } of found) {
      const name = metadata.name ?? '';
      const volume = await world.admin.get(persistentVolumeClaims, { namespace, name: volumeClaimName(name) });
      expect(volume && controllerOf(volume)).toMatchObject({ kind: 'EtcdMember', uid: metadata.uid });
      expect(spec.tls).toMatchObject({ clientServerSecretRef: { name: 'server' }, peerSecretRef: { name: 'peer' } });
    }
    const member = found.find(({ metadata }) => !go.members.includes(metadata.name ?? ''));
    const { name = '', uid = '' } = member?.metadata ?? {};
    const old = await world.admin.get(pods, { namespace, name });
    await world.admin.delete(pods, { namespace, name }, { uid: old?.metadata.uid ?? '' });
    await eventually('the Pod to be deleted', async () =>
      (await world.admin.get(pods, { namespace, name })) === undefined ? true : undefined,
    );
    const owner = {
      uid,
      references: [
        { apiVersion: API_VERSION, kind: 'EtcdMember', name, uid, controller: true, blockOwnerDeletion: true },
      ],
    };
    const { initialCluster = '', clusterToken: token = '' } = member?.spec ?? {};
    const pod = memberPod(namespace, go, { member: name, owner, initialCluster, token, isSeed: false });
    await world.admin.create(pods, pod as unknown as KubeObject);
    await eventually(
      'the Pod to be ready',
      async () => {
        const now = await world.admin.get(pods, { namespace, name });
        return now?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') || undefined;
      },
      { timeoutMs: PATIENCE_MS },
    );
    const access = accessTo(name);
    const endpoint = `https://${world.kubelet.addressOf(namespace, name)}:2379`;
    const list = await world.etcd.members.list({ endpoint, timeoutMs: 5_000, access }, { linearizable: true });
    expect(list.ok && list.value.members.length).toBe(3);

    const left = await identities(namespace);
    operator = world.startOperator();
    await eventually('the PVCs to be taken over', async () => {
      const owners = (await world.list(persistentVolumeClaims, namespace)).flatMap(controllerOf);
      return owners.every((each) => each === undefined) || undefined;
    });
    await world.patiently(PATIENCE_MS).condition(namespace, 'db', 'Available', 'True', 'QuorumHealthy');
    await pause(3_000);
    expect(await identities(namespace)).toEqual(left);
  },
  6 * PATIENCE_MS,
);
