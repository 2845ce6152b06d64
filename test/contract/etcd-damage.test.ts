/** The last log lines of each version on damaged data are the operator's failure evidence: a changed wording must fail here. */
import { closeSync, openSync, readdirSync, rmSync, statSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findingIn } from '../../src/controllers/member/terminations.ts';
import { ask, ETCD_VERSIONS, type EtcdLab, initialCluster, type Node, startLab } from '../support/servers/etcd.ts';
import { must } from './etcd-world.ts';

const PAGE = 4096;
const KEPT = 2_048; // of a log, by FallbackToLogsOnError

let lab: EtcdLab;
beforeAll(async () => {
  lab = await startLab();
});
afterAll(() => lab.close());

const database = ({ folder }: Node): string => join(folder, 'member', 'snap', 'db');
const log = ({ folder }: Node): string => {
  const [first = ''] = readdirSync(join(folder, 'member', 'wal')).filter((name) => name.endsWith('.wal'));
  return join(folder, 'member', 'wal', first);
};

function overwrite(file: string, from: number, bytes: Uint8Array): void {
  const opened = openSync(file, 'r+');
  writeSync(opened, bytes, 0, bytes.length, from);
  closeSync(opened);
}
const noise = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => (i * 167 + 13) % 251);

interface Damage {
  readonly what: string;
  readonly how: (node: Node) => void;
  readonly reason: string;
}
const DAMAGE: readonly Damage[] = [
  {
    what: 'zeroed root pages',
    how: (node) => overwrite(database(node), 0, new Uint8Array(2 * PAGE)),
    reason: 'DataInvalid',
  },
  {
    what: 'nothing but root pages',
    how: (node) => overwrite(database(node), 2 * PAGE, new Uint8Array(statSync(database(node)).size - 2 * PAGE)),
    reason: 'DataInvalid',
  },
  {
    what: 'pages of noise',
    how: (node) => overwrite(database(node), 3 * PAGE, noise(12 * PAGE)),
    reason: 'DataInvalid',
  },
  { what: 'a database of a hundred bytes', how: (node) => truncateSync(database(node), 100), reason: 'DataInvalid' },
  {
    what: 'a truncated database, as on a failing disk',
    how: (node) => truncateSync(database(node), 5 * PAGE),
    reason: 'StorageError',
  },
  {
    what: 'random bytes in the WAL',
    how: (node) => overwrite(log(node), 5 * PAGE, noise(4 * PAGE)),
    reason: 'DataInvalid',
  },
  {
    what: 'an empty directory',
    how: ({ folder }) => rmSync(join(folder, 'member'), { recursive: true }),
    reason: 'DataInvalid',
  },
];

describe.each(ETCD_VERSIONS)('etcd %s on', (version) => {
  test.concurrent.each(DAMAGE)('$what', async ({ how, reason }) => {
    const node = await lab.seed({ version, flags: ['--log-level=info'] });
    for (let n = 0; n < 40; n++) must(await lab.client.kv.put(ask(node), `k${n % 7}`, noise(20_000)));
    await node.stop('SIGKILL');
    how(node);
    for (let start = 0; start < 2; start++) {
      node.start({ initialCluster: initialCluster([node]), state: 'existing' });
      const exitCode = (await node.process?.ended) ?? 137;
      const message = node.process?.log().slice(-KEPT) ?? '';
      expect(findingIn({ exitCode, reason: 'Error', message })?.reason, message).toBe(reason);
    }
  });
});

test('an etcd that was killed beside a killed peer logs no evidence of damaged data', async () => {
  const nodes = await lab.cluster(3, { version: '3.6.16', flags: ['--log-level=info'] });
  const [a, b] = nodes;
  await a?.stop('SIGKILL');
  await b?.stop('SIGTERM');
  const message = b?.process?.log().slice(-KEPT) ?? '';
  expect(message).toContain('level');
  for (const exitCode of [1, 2]) expect(findingIn({ exitCode, message })).toBeUndefined();
});
