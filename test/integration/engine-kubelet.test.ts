/** Logs, ports, evictions and scaling through a real API server. The kubelet behind it is ours: it reports the requests it got. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCA } from '../../local/pki.ts';
import type { Pod } from '../../src/gen/kube.ts';
import type { KubeObject, Resource } from '../../src/kube/object.ts';
import { podLog } from '../../src/kube/pod-log.ts';
import { openPodPort } from '../../src/kube/port-forward.ts';
import { pods } from '../../src/kube/resources.ts';
import { type ControlPlane, startControlPlane } from '../support/servers/control-plane.ts';
import { Processes } from '../support/servers/processes.ts';
import { acceptPort } from '../support/servers/websocket.ts';

const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-kubelet-'));
const processes = new Processes(folder);
const asked: string[] = [];
let plane: ControlPlane;
let kubelet: Server;

beforeAll(async () => {
  plane = await startControlPlane(processes, folder);
  const own = await (await createCA()).issue({ user: 'kubelet' }, ['127.0.0.1']);
  kubelet = createServer({ key: own.key, cert: own.cert }, (incoming, outgoing) => {
    asked.push(incoming.url ?? '');
    outgoing.write('first\nsec');
    setTimeout(() => outgoing.end('ond\n'), 20);
  });
  kubelet.on('upgrade', (incoming, socket) => {
    asked.push(`${incoming.url} ${incoming.headers['sec-websocket-protocol']}`);
    acceptPort(incoming, socket);
  });
  await new Promise<void>((resolve) => kubelet.listen(0, '127.0.0.1', resolve));
  const { port } = kubelet.address() as AddressInfo;
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  };
  const { transport } = plane.admin;
  await transport.json('/api/v1/nodes', { method: 'POST', body: { metadata: { name: 'node' } } });
  const contentType = 'application/merge-patch+json';
  await transport.json('/api/v1/nodes/node/status', { method: 'PATCH', body: { status }, contentType });
});
afterAll(async () => {
  kubelet?.closeAllConnections();
  kubelet?.close();
  await plane?.admin.transport.close();
  await processes.stopAll();
  rmSync(folder, { recursive: true, force: true });
});

async function aPod(name: string, labels: Record<string, string> = {}): Promise<Pod> {
  const spec = { nodeName: 'node', containers: [{ name: 'etcd', image: 'i' }] };
  const pod = await plane.admin.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels },
    spec,
  });
  const status = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
  await plane.admin.patch(pods, { namespace: 'default', name }, { status }, { subresource: 'status' });
  return pod;
}
const soon = () => AbortSignal.timeout(10_000);

test('the log of a container', async () => {
  await aPod('logging');
  const lines: string[] = [];
  const ref = { namespace: 'default', name: 'logging' };
  for await (const line of podLog(plane.admin.transport, ref, { container: 'etcd', follow: true, signal: soon() }))
    lines.push(line);
  expect(lines).toEqual(['first', 'second']);
  expect(asked).toContain('/containerLogs/default/logging/etcd?follow=true');
});

test('a port of a Pod', async () => {
  await aPod('serving');
  const port = await openPodPort(plane.admin.transport, { namespace: 'default', name: 'serving' }, 2379, soon());
  port.write('hello');
  expect(String((await once(port, 'data'))[0])).toBe('HELLO');
  port.destroy();
  expect(asked.find((url) => url.startsWith('/portForward/default/serving'))).toContain('v4.channel.k8s.io');
});

test('a port of a Pod that does not exist', async () => {
  const missing = { namespace: 'default', name: 'missing' };
  await expect(openPodPort(plane.admin.transport, missing, 1, soon())).rejects.toMatchObject({ name: 'ApiError' });
});

test('an eviction that would violate a PodDisruptionBudget is refused with 429, and only the Pod with the given UID is evicted', async () => {
  const pod = await aPod('guarded', { app: 'guarded' });
  const ref = { namespace: 'default', name: 'guarded' };
  const spec = { minAvailable: 1, selector: { matchLabels: { app: 'guarded' } } };
  const path = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
  await plane.admin.transport.json(path, { method: 'POST', body: { metadata: { name: 'guard' }, spec } });
  const uid = pod.metadata.uid ?? '';
  await expect(plane.admin.evict(ref, { uid })).rejects.toMatchObject({ code: 429 });
  await plane.admin.transport.json(`${path}/guard`, { method: 'DELETE' });
  await expect(plane.admin.evict(ref, { uid: '11111111-0000-4000-8000-000000000000' })).rejects.toMatchObject({
    code: 409,
  });
  await plane.admin.evict(ref, { uid });
  expect((await plane.admin.get(pods, ref))?.metadata.deletionTimestamp).toBeDefined();
  await plane.admin.evict({ namespace: 'default', name: 'missing' }, { uid });
});

test('the replicas of a scalable object', async () => {
  type Scaled = KubeObject & { readonly spec: { readonly replicas: number } & Readonly<Record<string, unknown>> };
  const sets: Resource<Scaled> = { group: 'apps', version: 'v1', plural: 'replicasets', kind: 'ReplicaSet' };
  const labels = { app: 'scaled' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const metadata = { name: 'scaled', namespace: 'default' };
  const spec = { replicas: 1, selector: { matchLabels: labels }, template };
  await plane.admin.create(sets, { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata, spec });
  await plane.admin.scale(sets, metadata, 3);
  expect((await plane.admin.get(sets, metadata))?.spec.replicas).toBe(3);
});
