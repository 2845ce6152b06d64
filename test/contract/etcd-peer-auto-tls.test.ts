/** Peers with self-signed certificates, on each real version: which peers join them, and which cannot. */
import { describe, expect, test } from 'vitest';
import type { Result } from '../../src/etcd/errors.ts';
import { ask, ETCD_VERSIONS, type EtcdLab, initialCluster, type Node, startLab } from '../support/servers/etcd.ts';
import { eventually } from '../support/servers/processes.ts';

function must<T>(answer: Result<T>): T {
  if (!answer.ok) throw new Error(`${answer.error.kind}: ${answer.error.message}`);
  return answer.value;
}

interface Auto {
  readonly lab: EtcdLab;
  readonly seed: Node;
  /** Adds a member to etcd and starts it. */
  readonly join: (options: {
    readonly peerScheme: 'http' | 'https';
    readonly flags: readonly string[];
  }) => Promise<Node>;
}

describe.concurrent.each(ETCD_VERSIONS)('etcd %s', (version) => {
  const it = test.extend<{ auto: Auto }>({
    // oxlint-disable-next-line no-empty-pattern -- vitest reads the names of what a fixture needs
    auto: async ({}, use) => {
      const lab = await startLab();
      const seed = await lab.seed({ version, peerScheme: 'https', flags: ['--peer-auto-tls'] });
      let count = 0;
      const join: Auto['join'] = async (options) => {
        const joiner = lab.node(`joiner-${count++}`, { version, ...options });
        must(await lab.client.members.add(ask(seed), [joiner.peerURL], { learner: true }));
        joiner.start({ initialCluster: initialCluster([seed, joiner]), state: 'existing' });
        return joiner;
      };
      await use({ lab, seed, join });
      await lab.close();
    },
  });

  it('another one joins, has the data, and comes back after a restart', async ({ auto: { lab, seed, join } }) => {
    must(await lab.client.kv.put(ask(seed), 'k', 'v'));
    const joiner = await join({ peerScheme: 'https', flags: ['--peer-auto-tls'] });
    await joiner.ready();
    await joiner.stop('SIGTERM');
    joiner.start({ initialCluster: initialCluster([joiner]), state: 'existing' });
    await joiner.ready();
    const { members } = must(await lab.client.members.list(ask(seed), { linearizable: true }));
    expect(members.map(({ name }) => name).toSorted()).toEqual([joiner.name, seed.name]);
  });

  it('a plaintext peer ends before it has joined: it cannot verify their certificates', async ({
    auto: { lab, seed, join },
  }) => {
    const joiner = await join({ peerScheme: 'http', flags: [] });
    await eventually('it to end', () => joiner.process?.log().includes('cannot fetch cluster info') || undefined);
    expect(joiner.process?.log()).toContain('x509: ');
    const { members } = must(await lab.client.members.list(ask(seed), { linearizable: true }));
    expect(members.map(({ name }) => name)).not.toContain(joiner.name);
  });
});
