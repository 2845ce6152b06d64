/** What each real version and the model do when a database is full, corrupt, compacted, copied or downgraded. */
import { describe, expect } from 'vitest';
import type { Result } from '../../src/etcd/errors.ts';
import { ask, IMPLEMENTATIONS, inWorld, kindOf, must } from './etcd-world.ts';

const QUOTA = 16 * 1024 ** 2;

/** Differences between the versions. */
const DIFFERENCES = {
  '3.5.35': {
    // Neither field exists.
    storageVersion: undefined,
    quota: undefined,
    hashRevision: false,
    older: '3.4.0',
    cancelWithoutOne: 'noDowngrade',
    // It is carried out without a response.
    enable: 'timeout',
    // Disarming any alarm lifts every restriction, whatever other alarms exist.
    corruptAfterSpace: 'ok',
  },
  '3.6.16': {
    storageVersion: '3.6.0',
    quota: QUOTA,
    hashRevision: true,
    older: '3.5.0',
    cancelWithoutOne: 'ok', // there is nothing to cancel, and that is no error
    enable: 'ok',
    corruptAfterSpace: 'corrupt',
  },
  '3.7.3': {
    storageVersion: '3.7.0',
    quota: QUOTA,
    hashRevision: true,
    older: '3.6.0',
    cancelWithoutOne: 'ok',
    enable: 'ok',
    corruptAfterSpace: 'corrupt',
  },
} as const;

const MIB = new Uint8Array(1024 ** 2).fill(7);

describe.concurrent.each(IMPLEMENTATIONS)('etcd $name', ({ version, start }) => {
  const differs = DIFFERENCES[version];
  const it = inWorld(start);

  it('a full database refuses writes with NOSPACE, and recovers by compaction, defragmentation and disarming', async ({
    world,
  }) => {
    const node = await world.seed({ quotaBytes: QUOTA });
    const { kv, maintenance } = world.etcd;
    const { dbSizeQuota, memberId } = must(await maintenance.status(ask(node)));
    expect(dbSizeQuota).toBe(differs.quota);
    let full: Result<bigint> = { ok: true, value: 0n };
    for (let i = 0; i < 40 && full.ok; i++) full = await kv.put(ask(node), 'k', MIB);
    expect(kindOf(full)).toBe('noSpace');
    expect(must(await maintenance.alarms(ask(node)))).toEqual([{ memberId, alarm: 'noSpace' }]);
    expect(must(await maintenance.status(ask(node))).alarms).toEqual([{ memberId, alarm: 'NOSPACE' }]);
    expect(kindOf(await kv.range(ask(node), { key: 'k', keysOnly: true }))).toBe('ok');

    const { revision, dbSize } = must(await maintenance.status(ask(node)));
    must(await kv.compact(ask(node), revision, { physical: true }));
    must(await maintenance.defragment(ask(node, 30_000)));
    must(await kv.read(ask(node))); // a member that has finished reads again
    expect(must(await maintenance.status(ask(node))).dbSize).toBeLessThan(dbSize / 2);
    expect(kindOf(await kv.put(ask(node), 'k', 'v'))).toBe('noSpace'); // until it is disarmed
    must(await maintenance.disarm(ask(node), { memberId, alarm: 'noSpace' }));
    expect(must(await maintenance.alarms(ask(node)))).toEqual([]);
    must(await kv.put(ask(node), 'k', 'v'));
  });

  it('a member that is being defragmented answers neither reads nor its status, and goes on without its client', async ({
    world,
  }) => {
    const node = await world.seed();
    const { kv, maintenance, members } = world.etcd;
    await world.enlarge(node);
    // On a busy machine it may have ended before it is asked: then once more.
    await world.until('it answers nothing meanwhile', async () => {
      if (kindOf(await maintenance.defragment(ask(node, 30))) !== 'timeout') return undefined;
      const list = members.list(ask(node), { linearizable: true }); // as long as no write waits to be applied
      const answers = await Promise.all([kv.read(ask(node, 60)), maintenance.status(ask(node, 60))]);
      must(await list);
      return answers.every((answer) => kindOf(answer) === 'timeout') || undefined;
    });
    await world.until('it has finished', async () => (await kv.read(ask(node))).ok || undefined);
    must(await maintenance.status(ask(node)));
  });

  it('a defragmentation that frees nothing succeeds', async ({ world }) => {
    const node = await world.seed();
    const { maintenance } = world.etcd;
    must(await maintenance.defragment(ask(node)));
    const { dbSize } = must(await maintenance.status(ask(node)));
    must(await maintenance.defragment(ask(node)));
    expect(must(await maintenance.status(ask(node))).dbSize).toBe(dbSize);
  });

  it('a member with a CORRUPT alarm refuses writes, and still serves reads', async ({ world }) => {
    const node = await world.seed();
    const { kv, maintenance } = world.etcd;
    const { memberId } = must(await maintenance.status(ask(node)));
    const alarm = { memberId, alarm: 'corrupt' } as const;
    expect(must(await maintenance.activate(ask(node), alarm))).toEqual([alarm]);
    expect(kindOf(await kv.put(ask(node), 'k', 'v'))).toBe('corrupt');
    expect(kindOf(await kv.range(ask(node), { key: 'k' }))).toBe('ok');
    must(await maintenance.disarm(ask(node), alarm));
    must(await kv.put(ask(node), 'k', 'v'));
  });

  it('each alarm blocks certain calls and no others, on all members', async ({ world }) => {
    const [a, b] = await world.together(2);
    const { kv, maintenance, members } = world.etcd;
    const { memberId } = must(await maintenance.status(ask(a)));
    must(await kv.put(ask(a), 'k', 'v'));
    const tried = async (id: bigint) => ({
      put: kindOf(await kv.put(ask(b), 'k', 'v')),
      range: kindOf(await kv.range(ask(b), { key: 'k' })),
      read: kindOf(await kv.read(ask(b))),
      delete: kindOf(await kv.delete(ask(b), { key: 'other' })),
      compact: kindOf(await kv.compact(ask(b), id)),
      defragment: kindOf(await maintenance.defragment(ask(b))),
      hashKV: kindOf(await maintenance.hashKV(ask(b), 0n)),
      update: kindOf(await members.update(ask(b), memberId, [a.peerURL])),
    });
    const well = { range: 'ok', read: 'ok', defragment: 'ok', hashKV: 'ok', update: 'ok' };
    const noSpace = { memberId, alarm: 'noSpace' } as const;
    must(await maintenance.activate(ask(a), noSpace));
    expect(await tried(1n)).toEqual({ ...well, put: 'noSpace', delete: 'ok', compact: 'ok' });
    const corrupt = { memberId, alarm: 'corrupt' } as const;
    must(await maintenance.activate(ask(a), corrupt));
    expect(await tried(2n)).toEqual({ ...well, put: 'corrupt', delete: 'corrupt', compact: 'corrupt' });
    expect(must(await maintenance.alarms(ask(b)))).toHaveLength(2);
    must(await maintenance.disarm(ask(a), noSpace));
    expect(must(await maintenance.alarms(ask(b)))).toEqual([corrupt]);
    expect(kindOf(await kv.put(ask(b), 'k', 'v'))).toBe(differs.corruptAfterSpace);
    expect(must(await maintenance.disarm(ask(a), { memberId: 42n, alarm: 'corrupt' }))).toEqual([]); // of an unknown member
    must(await maintenance.disarm(ask(b), corrupt));
    must(await kv.put(ask(b), 'k', 'v'));
  });

  it('members with the same keys have the same hash', async ({ world }) => {
    const nodes = await world.together(3);
    const { kv, maintenance } = world.etcd;
    const [first] = nodes;
    const revision = must(await kv.put(ask(first), 'k', 'v'));
    const hashes = await world.until('all members have the revision', async () => {
      const answers = await Promise.all(nodes.map((node) => maintenance.hashKV(ask(node), revision)));
      return answers.every(({ ok }) => ok) ? answers.map(must) : undefined;
    });
    expect(new Set(hashes.map(({ hash }) => hash)).size).toBe(1);
    expect(new Set(hashes.map(({ memberId }) => memberId)).size).toBe(3);
    expect(hashes.every(({ hashRevision }) => (hashRevision !== undefined) === differs.hashRevision)).toBe(true);
    expect(kindOf(await maintenance.hashKV(ask(first), revision + 100n))).toBe('futureRevision');
  });

  it('compacted revisions, future revisions and too large requests have errors of their own', async ({ world }) => {
    const node = await world.seed();
    const { kv, maintenance } = world.etcd;
    for (const value of ['1', '2', '3']) must(await kv.put(ask(node), 'k', value));
    must(await kv.compact(ask(node), 4n));
    expect([
      kindOf(await kv.range(ask(node), { key: 'k', revision: 2n })),
      kindOf(await kv.range(ask(node), { key: 'k', revision: 100n })),
      kindOf(await kv.compact(ask(node), 4n)),
      kindOf(await kv.compact(ask(node), 100n)),
      kindOf(await maintenance.hashKV(ask(node), 2n)),
      kindOf(await kv.put(ask(node), 'k', new Uint8Array(2 * 1024 ** 2))),
      kindOf(await kv.put(ask(node), '', 'v')),
    ]).toEqual(['compacted', 'futureRevision', 'compacted', 'futureRevision', 'compacted', 'tooLarge', 'other']);
  });

  it('keys are listed by prefix, counted, limited and deleted', async ({ world }) => {
    const node = await world.seed();
    const { kv } = world.etcd;
    for (const key of ['a/1', 'a/2', 'b/1']) must(await kv.put(ask(node), key, key));
    expect(must(await kv.count(ask(node)))).toBe(3n);
    expect(must(await kv.count(ask(node), { revision: 3n, serializable: true }))).toBe(2n);
    const page = must(await kv.range(ask(node), { key: 'a/', prefix: true, limit: 1, keysOnly: true }));
    expect(page).toMatchObject({ count: 2n, more: true, kvs: [{ value: new Uint8Array() }] });
    expect(must(await kv.delete(ask(node), { key: 'a/', prefix: true }))).toBe(2n);
  });

  it('a snapshot is verified during the stream, and refused when it is larger than the limit', async ({ world }) => {
    const node = await world.seed();
    const { kv, maintenance } = world.etcd;
    for (let i = 0; i < 5; i++) must(await kv.put(ask(node), `k${i}`, MIB));
    await world.until('the storage has a version, if this etcd knows any', async () => {
      const { storageVersion } = must(await maintenance.status(ask(node)));
      return storageVersion === differs.storageVersion || undefined;
    });
    const stream = maintenance.snapshot(ask(node, 30_000));
    const pieces = await Array.fromAsync(stream);
    expect((stream.totalBytes ?? 0) % 512).toBe(0);
    expect(stream.totalBytes).toBeGreaterThan(5 * 1024 ** 2);
    expect(stream.receivedBytes).toBe(stream.totalBytes);
    expect(stream.storageVersion).toBe(differs.storageVersion);
    expect(Buffer.from(pieces.at(-1) ?? []).toString('hex')).toBe(stream.digest);
    await expect(Array.fromAsync(maintenance.snapshot(ask(node), { maxBytes: 1000 }))).rejects.toMatchObject({
      error: { kind: 'tooLarge' },
    });
  });

  it('a downgrade is checked, enabled once, and canceled', async ({ world }) => {
    const node = await world.seed();
    const { maintenance } = world.etcd;
    await world.until('the cluster has agreed on its version', async () => {
      const answer = await maintenance.downgrade(ask(node), 'validate', '0.0.1');
      return answer.ok || answer.error.kind !== 'busy' ? true : undefined;
    });
    const { older, cancelWithoutOne, enable } = differs;
    const answers = [
      await maintenance.downgrade(ask(node), 'validate', 'nonsense'),
      await maintenance.downgrade(ask(node), 'validate', '2.0.0'),
      await maintenance.downgrade(ask(node), 'cancel'),
      await maintenance.downgrade(ask(node), 'validate', older),
      await maintenance.downgrade(ask(node, 2_000), 'enable', older),
      await maintenance.downgrade(ask(node), 'enable', older),
    ];
    expect(answers.map(kindOf)).toEqual([
      'badDowngradeVersion',
      'badDowngradeVersion',
      cancelWithoutOne,
      'ok',
      enable,
      'downgradeInProgress',
    ]);
    const target = async () => must(await maintenance.status(ask(node))).downgradeTo;
    const written = (as: string | undefined) =>
      world.until(`its storage version is ${as}`, async () =>
        must(await maintenance.status(ask(node))).storageVersion === as ? true : undefined,
      );
    expect(await target()).toBe(version === '3.5.35' ? undefined : differs.older);
    await written(version === '3.5.35' ? undefined : differs.older);
    expect(kindOf(await maintenance.downgrade(ask(node, 2_000), 'cancel'))).toBe(enable);
    expect(await target()).toBeUndefined();
    await written(differs.storageVersion);
  });
});
