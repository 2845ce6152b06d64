import { expect, test } from 'vitest';
import { ServedCertificates } from './served-certificates.ts';

function members(serving: Record<string, string | undefined>) {
  const reads: string[] = [];
  const served = new ServedCertificates();
  const read = (expected: string) =>
    served.look('ns/db client', expected, Object.keys(serving), (endpoint) => {
      reads.push(endpoint);
      return Promise.resolve(serving[endpoint]);
    });
  const behind = async (expected: string): Promise<readonly string[]> => (await read(expected)).behind;
  return { behind, read, reads, serving, served };
}

test('a member that serves the new certificate is not read again, one that serves the old one is', async () => {
  const { behind, reads, serving } = members({ a: 'new', b: 'old' });
  expect([await behind('new'), reads.join()]).toEqual([['b'], 'a,b']);
  expect([await behind('new'), reads.join()]).toEqual([['b'], 'a,b,b']);
  serving['b'] = 'new';
  expect([await behind('new'), await behind('new'), reads.join()]).toEqual([[], [], 'a,b,b,b']);
  expect([await behind('newer'), reads.length]).toEqual([['a', 'b'], 6]);
});

test('a member without a handshake is neither behind nor proven, and is read again next time', async () => {
  const { read, reads } = members({ a: undefined, b: 'new' });
  const nothing = { behind: [], unseen: ['a'] };
  expect([await read('new'), await read('new'), reads.join()]).toEqual([nothing, nothing, 'a,b,a']);
});

test('a member that served the old certificate and has no handshake is still behind', async () => {
  const { read, serving } = members({ a: 'old' });
  await read('old');
  serving['a'] = undefined;
  const still = { behind: ['a'], unseen: ['a'] };
  expect([await read('new'), await read('new')]).toEqual([still, still]);
  serving['a'] = 'new';
  expect(await read('new')).toEqual({ behind: [], unseen: [] });
});

test('nothing is kept about a deleted cluster', async () => {
  const { behind, reads, served } = members({ a: 'new' });
  await behind('new');
  served.forget('ns/db client');
  await behind('new');
  expect(reads.length).toBe(2);
});
