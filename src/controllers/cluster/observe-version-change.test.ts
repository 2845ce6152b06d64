/** How often members are asked to hash their data. */
import { expect, test } from 'vitest';
import { HASH_INTERVAL_MS } from '../../domain/timing.ts';
import { HashLedger } from './observe-version-change.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');

function asked() {
  let times = 0;
  const ledger = new HashLedger();
  const at = async (ms: number, about = 'three members', key = 'ns/db') => {
    const hashes = await ledger.hashes(key, about, NOW + ms, () =>
      Promise.resolve([{ member: 'a', hash: String(++times), at: '7' }]),
    );
    return hashes[0]?.hash;
  };
  return { ledger, at };
}

test('members are asked once a minute, however often the cluster is reconciled', async () => {
  const { at } = asked();
  expect([await at(0), await at(5_000), await at(HASH_INTERVAL_MS - 1), await at(HASH_INTERVAL_MS)]).toEqual([
    '1',
    '1',
    '1',
    '2',
  ]);
});

test('other members are asked at once, and those of another cluster', async () => {
  const { at } = asked();
  expect([await at(0), await at(1, 'a member was replaced'), await at(2, 'three members', 'ns/other')]).toEqual([
    '1',
    '2',
    '3',
  ]);
});

test('a clock that is set back by hours delays nothing', async () => {
  const { at } = asked();
  expect([await at(0), await at(-HASH_INTERVAL_MS)]).toEqual(['1', '2']);
});

test('members that have not answered are not asked again at once: they may have hashed', async () => {
  const { ledger } = asked();
  const fails = () => ledger.hashes('ns/db', 'x', NOW, () => Promise.reject(new Error('aborted')));
  await expect(fails()).rejects.toThrow('aborted');
  expect(await fails()).toEqual([]);
});

test('nothing is kept of a deleted cluster', async () => {
  const { ledger, at } = asked();
  await at(0);
  ledger.forget('ns/db');
  expect(await at(1)).toBe('2');
});
