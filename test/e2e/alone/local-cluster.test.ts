/** The functions with which tests break nodes, volumes and DNS have the effect on a Pod that their names promise. */
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { S3 } from '../../../local/addons.ts';
import type { LocalCluster } from '../../../local/cluster.ts';
import {
  addFreshNode,
  cutNetwork,
  deleteNode,
  drain,
  fillVolume,
  freeVolume,
  healNetwork,
  killContainers,
  slowDns,
  startKubeletAgain,
  stopKubelet,
  uncordon,
} from '../../../local/faults.ts';
import { BUSYBOX_IMAGE } from '../../../local/images.ts';
import { becomes, testCluster } from '../../support/journeys/journey.ts';

let cluster: LocalCluster;
beforeAll(async () => {
  cluster = await testCluster();
});

const ready = (node: string, status: 'True' | 'Unknown'): Promise<string> =>
  cluster.kubectl(['wait', `--for=condition=Ready=${status}`, `node/${node}`, '--timeout=60s']);

/** A Pod with a volume of 64 MiB on the given node; tests run commands in its shell. */
async function aShell(
  node: string,
): Promise<{ readonly name: string; readonly sh: (script: string) => Promise<string> }> {
  const name = `shell-${crypto.randomUUID().slice(0, 8)}`;
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, namespace: 'default' } };
  const resources = { requests: { storage: '64Mi' } };
  const container = {
    name: 'shell',
    image: BUSYBOX_IMAGE,
    command: ['sh', '-c', 'trap exit TERM; while :; do sleep 1; done'],
    volumeMounts: [{ name: 'data', mountPath: '/data' }],
  };
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: name } }];
  const spec = { nodeSelector: { 'kubernetes.io/hostname': node }, containers: [container], volumes };
  await cluster.apply([
    { ...claim, spec: { accessModes: ['ReadWriteOnce'], resources } },
    { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec },
  ]);
  onTestFinished(async () => {
    await cluster.kubectl([
      'delete',
      'pod,pvc',
      name,
      '--grace-period=0',
      '--force',
      '--ignore-not-found',
      '--wait=false',
    ]);
  });
  await cluster.kubectl(['wait', '--for=condition=Ready', `pod/${name}`, '--timeout=60s']);
  return { name, sh: (script) => cluster.kubectl(['exec', name, '--', 'sh', '-c', script]) };
}

test.runIf(process.env['DEV_TEST_ALL'])(
  'a full volume refuses writes, its node does not, and it can be emptied again',
  async () => {
    const shell = await aShell('node-1');
    await fillVolume(cluster, 'default', shell.name);
    await expect(shell.sh('echo more > /data/file')).rejects.toThrow(/space/);
    expect(await shell.sh('echo elsewhere > /file && cat /file')).toBe('elsewhere\n');
    await freeVolume(cluster, 'default', shell.name);
    expect(await shell.sh('echo more > /data/file && cat /data/file')).toBe('more\n');
  },
);

test.runIf(process.env['DEV_TEST_ALL'])(
  'DNS responds late while it is slowed down, and at once afterwards',
  async () => {
    const shell = await aShell('node-2');
    const lookUp = async (): Promise<number> => {
      const started = performance.now();
      await shell.sh('nslookup kubernetes.default.svc.cluster.local');
      return performance.now() - started;
    };
    const quick = await lookUp();
    const stop = slowDns(cluster, 2_000);
    onTestFinished(stop);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const slow = await lookUp();
    await stop();
    expect(slow).toBeGreaterThan(quick + 500);
    expect(await lookUp()).toBeLessThan(slow);
  },
);

test.runIf(process.env['DEV_TEST_ALL'])('the S3 server answers at its Service', async () => {
  const shell = await aShell('node-3');
  expect(await shell.sh(`wget -q -O - ${S3.endpoint}/health`)).toMatch(/ok/i);
});

test.runIf(process.env['DEV_TEST_ALL'])('kubelet restarts killed containers', async () => {
  const shell = await aShell('node-2');
  killContainers(cluster, 'node-2');
  const restarts = ['get', 'pod', shell.name, '-o', 'jsonpath={.status.containerStatuses[0].restartCount}'];
  await becomes('the container to be started again', async () => expect(await cluster.kubectl(restarts)).toBe('1'));
  await cluster.kubectl(['wait', '--for=condition=Ready', `pod/${shell.name}`, '--timeout=60s']);
});

test.runIf(process.env['DEV_TEST_ALL'])(
  'a node without its kubelet is NotReady while its Pods keep running, and recovers',
  async () => {
    const shell = await aShell('node-3');
    const ip = await cluster.kubectl(['get', 'pod', shell.name, '-o', 'jsonpath={.status.podIP}']);
    const other = await aShell('node-1');
    await stopKubelet(cluster, 'node-3');
    onTestFinished(() => startKubeletAgain(cluster, 'node-3'));
    await ready('node-3', 'Unknown');
    expect(await other.sh(`ping -c 1 -W 2 ${ip}`)).toContain(' 0% packet loss');
    await startKubeletAgain(cluster, 'node-3');
    await ready('node-3', 'True');
  },
);

test.runIf(process.env['DEV_TEST_ALL'])(
  'a node that is cut off is NotReady and its Pods are unreachable until it is reconnected',
  async () => {
    const shell = await aShell('node-2');
    const ip = await cluster.kubectl(['get', 'pod', shell.name, '-o', 'jsonpath={.status.podIP}']);
    const other = await aShell('node-1');
    await cutNetwork(cluster, 'node-2');
    onTestFinished(() => healNetwork(cluster, 'node-2'));
    await expect(other.sh(`ping -c 1 -W 2 ${ip}`)).rejects.toThrow();
    await ready('node-2', 'Unknown');
    await healNetwork(cluster, 'node-2');
    await ready('node-2', 'True');
    // An address that could not be resolved is tried again only after a while.
    await becomes('its Pods to be reachable', async () =>
      expect(await other.sh(`ping -c 1 -W 2 ${ip}`)).toContain(' 0% packet loss'),
    );
  },
);

test.runIf(process.env['DEV_TEST_ALL'])(
  'a fourth node joins, runs Pods, is drained, and is lost for good when deleted',
  async () => {
    const node = await addFreshNode(cluster, 4);
    expect(node).toBe('node-4');
    const shell = await aShell(node);
    expect(await shell.sh('nslookup kubernetes.default.svc.cluster.local')).toContain('kubernetes');
    await drain(cluster, node);
    expect(await cluster.kubectl(['get', 'pod', shell.name, '--ignore-not-found'])).toBe('');
    await uncordon(cluster, node);
    await deleteNode(cluster, node);
    expect(await cluster.kubectl(['get', 'nodes', '-o', 'name'])).not.toContain(node);
    expect(cluster.state.nodes.map((each) => each.name)).toEqual(['node-1', 'node-2', 'node-3']);
  },
);
