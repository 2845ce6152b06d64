/** Scrubs: the same suite for every kind of store. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { AgentFailure } from '../../../src/agent/failure.ts';
import { compress } from '../../../src/agent/format/compress.ts';
import { manifestText } from '../../../src/agent/format/manifest.ts';
import { seal } from '../../../src/agent/format/seal.ts';
import { type KeyRing, sealKey } from '../../../src/agent/format/seal-key.ts';
import type { Store } from '../../../src/agent/stores/store.ts';
import { scrub } from '../../../src/agent/tasks/scrub.ts';
import { MANIFEST, type ScrubTask } from '../../../src/domain/agent-task.ts';
import { CLUSTER, folder, manifestOf, NOW, nameAt, SCHEDULE, type Suite, withMethod } from './prune-kit.ts';

const NEVER = new AbortController().signal;
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
/** Hardly compressible, so that there is something to cut off. */
const pages = Buffer.concat(Array.from({ length: 2_048 }, (_, i) => createHash('sha256').update(`page ${i}`).digest()));
/** As etcd streams it: with its digest at the end. */
const DATABASE = Buffer.concat([pages, createHash('sha256').update(pages).digest()]);
const ring = (letter: string): KeyRing => {
  const current = sealKey(Buffer.alloc(32, letter));
  return { current, all: [current] };
};

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Of what was stored last under a name. */
const digests = new Map<string, string>();

type Folder = ReturnType<typeof folder>;
interface Form {
  readonly key?: KeyRing;
  /** What is in the place of the stored bytes. */
  readonly stored?: (bytes: Buffer) => Buffer | undefined;
  readonly schedule?: string;
}

/** Compressed, and encrypted where there is a key. Returns its name. */
async function taken(
  it: Folder,
  hoursAgo: number,
  { key, stored, schedule = SCHEDULE.uid }: Form = {},
): Promise<string> {
  const name = nameAt(hoursAgo);
  const takenAt = new Date(NOW - hoursAgo * 3_600_000).toISOString();
  const identity = { path: `${name}.db`, uid: `uid-${name}.db`, takenAt };
  const small = compress(one(DATABASE));
  const bytes = Buffer.concat(await Array.fromAsync(key ? seal(key.current, identity, small) : small));
  digests.set(name, sha256(bytes));
  const encryption = key && { encryption: { algorithm: 'AES-256-GCM' as const, keyId: key.current.id } };
  const manifest = manifestOf(`${name}.db`, hoursAgo, {
    object: { key: `${name}.db`, path: `${name}.db`, sizeBytes: bytes.length, sha256: sha256(bytes) },
    database: { sizeBytes: DATABASE.length, sha256: sha256(DATABASE) },
    compression: 'zstd',
    ...encryption,
  });
  const content = stored ? stored(bytes) : bytes;
  if (content) await it.put(`${name}.db`, content, identity.uid, schedule);
  await it.put(`${name}.db${MANIFEST}`, Buffer.from(manifestText(manifest, key?.current)), identity.uid);
  return name;
}

const flipped = (bytes: Buffer): Buffer => {
  const other = Buffer.from(bytes);
  const at = other.length - 10;
  other[at] = (other[at] ?? 0) ^ 1;
  return other;
};

type Case = readonly [
  name: string,
  holds: (
    it: Folder,
    run: (
      more?: Partial<Omit<ScrubTask, 'at'>> & { readonly keys?: KeyRing; readonly at?: Store },
    ) => ReturnType<typeof scrub>,
  ) => Promise<void>,
];

const CASES: readonly Case[] = [
  [
    'the snapshot that was not verified for the longest time is read, by its age and by earlier scrubs',
    async (it, run) => {
      const [oldest, middle, newest] = [await taken(it, 300), await taken(it, 200), await taken(it, 1)];
      const verified: { name: string; uid?: string; time: number }[] = [];
      for (const [hours, name] of [oldest, middle, newest, oldest, middle].entries()) {
        const result = await run({ verified });
        expect(result).toMatchObject({ ok: true, snapshot: { name, uid: `uid-${name}.db` } });
        expect(result.damage).toBeUndefined();
        verified.push({ name, uid: `uid-${name}.db`, time: NOW + hours });
      }
    },
  ],
  [
    'nothing is written or deleted, and nothing is chosen where nothing is stored',
    async (it, run) => {
      expect(await run()).toEqual({ ok: true, task: 'scrub' });
      await taken(it, 3);
      const before = await it.keys();
      await run();
      expect(await it.keys()).toEqual(before);
    },
  ],
  [
    'a changed byte is found',
    async (it, run) => {
      const name = await taken(it, 3, { stored: flipped });
      const { snapshot, damage } = await run();
      expect([snapshot?.name, damage?.reason]).toEqual([name, 'SnapshotDamaged']);
    },
  ],
  [
    'a truncated object is found',
    async (it, run) => {
      await taken(it, 3, { stored: (bytes) => bytes.subarray(0, 100) });
      expect((await run()).damage).toMatchObject({
        reason: 'SnapshotDamaged',
        message: expect.stringContaining('100 bytes'),
      });
    },
  ],
  [
    'a lost object is found',
    async (it, run) => {
      await taken(it, 3, { stored: () => undefined });
      expect((await run()).damage?.reason).toBe('ObjectNotFound');
    },
  ],
  [
    'an unreadable manifest is found where the object belongs to the schedule',
    async (it, run) => {
      const [ours, theirs] = [nameAt(3), nameAt(4)];
      await it.put(`${ours}.db`, DATABASE, 'uid', SCHEDULE.uid);
      await it.put(`${theirs}.db`, DATABASE, 'uid', 'another');
      for (const name of [ours, theirs]) await it.put(`${name}.db${MANIFEST}`, Buffer.from('{'), 'uid');
      expect(await run()).toMatchObject({ snapshot: { name: ours }, damage: { reason: 'ManifestDamaged' } });
    },
  ],
  [
    'an encrypted one is decrypted; a recorded one whose key is gone is reported; without any key, what is stored is compared',
    async (it, run) => {
      const intact = await taken(it, 3, { key: ring('a') });
      expect(await run({ keys: ring('a') })).toMatchObject({ snapshot: { name: intact } });
      expect((await run({ keys: ring('a') })).damage).toBeUndefined();
      const recorded = [{ name: intact, uid: `uid-${intact}.db`, sha256: digests.get(intact) ?? '' }];
      expect((await run({ keys: ring('b'), recorded })).damage?.reason).toBe('WrongKey');
      expect((await run()).damage).toBeUndefined();
      await taken(it, 9, { key: ring('a'), stored: flipped });
      expect((await run()).damage?.reason).toBe('SnapshotDamaged');
      expect((await run({ keys: ring('a') })).damage?.reason).toBe('SnapshotDamaged');
    },
  ],
  [
    'one without encryption is read where the operator has recorded it, and otherwise not: any client may have written it',
    async (it, run) => {
      const name = await taken(it, 3);
      expect(await run({ keys: ring('a') })).toEqual({ ok: true, task: 'scrub' });
      const recorded = [{ name, uid: `uid-${name}.db`, sha256: digests.get(name) ?? '' }];
      const result = await run({ keys: ring('a'), recorded });
      expect([result.snapshot?.name, result.damage]).toEqual([name, undefined]);
    },
  ],
  [
    'a forged one keeps no real one from being read; one that replaces a recorded one is reported',
    async (it, run) => {
      const [forged, real, first] = [await taken(it, 90), await taken(it, 5), nameAt(100)];
      const recorded = [
        { name: first, uid: `uid-${first}.db`, sha256: 'c'.repeat(64) },
        { name: real, uid: `uid-${real}.db`, sha256: 'b'.repeat(64) },
      ];
      const result = await run({ recorded });
      expect(result.snapshot?.name).not.toBe(forged);
      expect(result).toMatchObject({
        snapshot: { name: real },
        damage: { reason: 'ManifestDamaged', message: expect.stringContaining('replaced') },
      });
    },
  ],
  [
    'what is lost is reported before anything is read, each once',
    async (it, run) => {
      const [oldest, lost, recent] = [
        await taken(it, 300),
        await taken(it, 200, { stored: () => undefined }),
        nameAt(2),
      ];
      await it.put(`${recent}.db`, DATABASE, 'uid', SCHEDULE.uid);
      await it.put(`${recent}.db${MANIFEST}`, Buffer.from('{'), 'uid');
      const damaged: { name: string }[] = [];
      for (const name of [lost, recent, oldest]) {
        expect((await run({ damaged })).snapshot).toMatchObject({ name });
        damaged.push({ name });
      }
    },
  ],
  [
    'a bucket that was emptied: the newest snapshot is missing, and stays reported',
    async (it, run) => {
      const name = nameAt(3);
      const newest = { name, uid: 'its uid', key: `${it.prefix}/${name}.db` };
      const missing = { snapshot: { name, uid: 'its uid' }, damage: { reason: 'ObjectNotFound' } };
      expect(await run({ newest })).toMatchObject(missing);
      const again = await run({ newest, damaged: [{ name }] });
      expect([again.absent, again.snapshot?.name]).toEqual([undefined, name]);
      const older = await taken(it, 9);
      expect(await run({ newest })).toMatchObject(missing);
      const known = await run({ newest, damaged: [{ name }], verified: [{ name, time: NOW }] });
      expect([known.absent, known.snapshot?.name, known.damage]).toEqual([undefined, older, undefined]);
      await it.put(`${name}.db`, DATABASE, 'its uid', SCHEDULE.uid);
      expect((await run({ newest })).damage).toBeUndefined();
    },
  ],
  [
    'a snapshot between one that a drill proved and the newest ones is read, though it is not recorded any more',
    async (it, run) => {
      const [proven, middle, newest] = [await taken(it, 90), await taken(it, 40), await taken(it, 1)];
      const recorded = [proven, newest].map((name) => ({
        name,
        uid: `uid-${name}.db`,
        sha256: digests.get(name) ?? '',
      }));
      const verified = recorded.map(({ name }) => ({ name, time: NOW }));
      expect((await run({ recorded, allRecordedFrom: NOW - 3_600_000, verified })).snapshot?.name).toBe(middle);
    },
  ],
  [
    'damaged ones that are stored no longer are named',
    async (it, run) => {
      const name = await taken(it, 3);
      const damaged = [{ name }, { name: nameAt(7) }, { name: nameAt(8) }];
      expect((await run({ damaged })).absent).toEqual([nameAt(7), nameAt(8)]);
    },
  ],
  [
    'a store that does not respond is a failure of the scrub, not of the snapshot',
    async (it, run) => {
      await taken(it, 3);
      const away = new AgentFailure('StoreUnreachable', 'no connection');
      const at = withMethod(it.store, 'get', (of) => async (key, signal) => {
        if (key.endsWith(MANIFEST)) return of.get(key, signal);
        throw away;
      });
      await expect(run({ at })).rejects.toBe(away);
    },
  ],
  [
    'retention does not count a damaged snapshot as a good copy, nor keep it as the newest good one',
    async (it) => {
      const [older, good, damaged] = [await taken(it, 9), await taken(it, 5), await taken(it, 1)];
      const found = { damaged: [{ name: damaged, uid: `uid-${damaged}.db` }] };
      await it.run({ keepLast: 1 }, found);
      const kept = await it.keys();
      expect(kept).toContain(`${good}.db`);
      expect(kept).not.toContain(`${older}.db`);
      await it.run({ keepLast: 1 }, { damaged: [{ name: damaged, uid: 'of an earlier one' }] });
      expect(await it.keys()).not.toContain(`${good}.db`);
    },
  ],
];

export function scrubSuite(suite: () => Promise<Suite>): void {
  test.each(CASES)('%s', async (name, holds) => {
    const it = folder(await suite(), `scrub-${sha256(Buffer.from(name)).slice(0, 8)}`);
    await holds(it, ({ keys, at = it.store, ...more } = {}) => {
      const task: ScrubTask = {
        task: 'scrub',
        at: { kind: 'pvc', root: '/' },
        prefix: `scrub-${sha256(Buffer.from(name)).slice(0, 8)}`,
        cluster: CLUSTER,
        schedule: SCHEDULE,
        verified: [],
        bytesPerSecond: 2 ** 30,
        now: NOW,
        ...more,
      };
      return scrub({ store: at, task, say: (line) => it.reported.push(line), signal: NEVER, keys });
    });
  });
}
