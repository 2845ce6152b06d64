/** Logs and ports of Pods through the whole of Kubernetes, kubelet and containerd included: what the kubectl plugin relies on. */

import { expect, onTestFinished, test } from 'vitest';
import { identityFromKubeconfig } from '../../src/kube/kubeconfig.ts';
import { podLog } from '../../src/kube/pod-log.ts';
import { listenForPod } from '../../src/kube/port-forward.ts';
import { Transport } from '../../src/kube/transport.ts';
import { ABOUT_DATA } from '../support/about-data.ts';
import { UserClient } from '../support/etcd-client.ts';
import { aTenant } from '../support/journeys/journey.ts';

test('a member is reached from outside through a forwarded port, and its log can be read', async () => {
  const tenant = await aTenant();
  await tenant.create('reached');
  await tenant.available('reached');
  const [pod] = await tenant.list('pods');
  const ref = { namespace: tenant.namespace, name: pod?.metadata.name ?? '' };
  const monotonic = (): number => performance.now();
  const transport = new Transport(identityFromKubeconfig(tenant.cluster.kubeconfig, {}, monotonic));
  const etcd = new UserClient(monotonic);
  const abort = new AbortController();
  onTestFinished(async () => {
    abort.abort();
    etcd.close();
    await transport.close();
  });

  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const local = await listenForPod(transport, ref, 2379, { signal: abort.signal, onError });
  onTestFinished(() => local.close());
  const ask = { endpoint: `http://127.0.0.1:${local.port}`, timeoutMs: 10_000 };
  expect(await etcd.put(ask, 'from', 'outside')).toMatchObject({ ok: true });
  expect(errors).toEqual([]);
  expect(await tenant.served('reached', 'get', 'from', '--print-value-only'), ABOUT_DATA).toBe('outside');

  const lines: string[] = [];
  for await (const line of podLog(transport, ref, { container: 'etcd', signal: abort.signal })) lines.push(line);
  expect(lines.join('\n')).toContain('ready to serve client requests');
});
