/** Real etcd of every minor starts with every option that a spec can set, rendered for it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { targetOf } from '../../src/api/defaults.ts';
import type { EtcdOptions } from '../../src/api/options.ts';
import { INITIAL_CHECK, optionFlags } from '../../src/controllers/member/options.ts';
import { expand } from '../support/kubelet/pod-process.ts';
import { ask, ETCD_VERSIONS, type EtcdLab, startLab } from '../support/servers/etcd.ts';

let lab: EtcdLab;
beforeAll(async () => {
  lab = await startLab();
}, 600_000);
afterAll(async () => {
  await lab?.close();
});

const everything: Required<EtcdOptions> = {
  quotaBackendBytes: 1_073_741_824,
  autoCompactionMode: 'periodic',
  autoCompactionRetention: '1h30m',
  snapshotCount: 5_000,
  heartbeatIntervalMilliseconds: 50,
  electionTimeoutMilliseconds: 500,
  maxRequestBytes: 2_097_152,
  grpcKeepalive: { minTimeSeconds: 2, intervalSeconds: 60, timeoutSeconds: 10 },
  logLevel: 'warn',
  corruptionCheck: { initial: true, compactHash: true, intervalMinutes: 60 },
};

describe.each(ETCD_VERSIONS)('etcd %s starts', (version) => {
  test.each<[string, EtcdOptions | undefined]>([
    ['with every option', everything],
    ['with the defaults of a new cluster', targetOf({ version }).options],
    [
      'by revisions, with the least of everything',
      {
        autoCompactionMode: 'revision',
        autoCompactionRetention: '0',
        quotaBackendBytes: 0,
        maxRequestBytes: 1024,
        heartbeatIntervalMilliseconds: 2,
        electionTimeoutMilliseconds: 10,
        grpcKeepalive: { minTimeSeconds: 1, intervalSeconds: 0, timeoutSeconds: 0 },
      },
    ],
    [
      'with the most of everything',
      {
        autoCompactionRetention: '2562047',
        heartbeatIntervalMilliseconds: 10_000,
        electionTimeoutMilliseconds: 50_000,
        maxRequestBytes: 104_857_600,
        logLevel: 'debug',
        grpcKeepalive: { minTimeSeconds: 86_400, intervalSeconds: 86_400, timeoutSeconds: 86_400 },
        corruptionCheck: { intervalMinutes: 43_200 },
      },
    ],
  ])('%s', async (what, options) => {
    const flags = optionFlags(options, version).map((f) => expand(f, { [INITIAL_CHECK]: 'true' }));
    if (what.startsWith('with the most')) {
      // An election takes as long as its timeout: etcd has accepted the flags before there is a leader.
      const node = lab.node(`most-${version}`, { version, flags });
      node.start({ initialCluster: `${node.name}=${node.peerURL}`, state: 'new' });
      await expect.poll(() => node.process?.log() ?? '', { timeout: 10_000 }).toMatch(/elect|raft|serving|starting/);
      const ended = await Promise.race([node.process?.ended, new Promise((r) => setTimeout(() => r('runs'), 1_000))]);
      expect(ended, node.process?.log()).toBe('runs');
      await node.stop();
      return;
    }
    const node = await lab.seed({ version, flags });
    expect((await lab.client.status(ask(node))).ok).toBe(true);
    await node.stop();
  });
});
