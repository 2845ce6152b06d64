import { expect, test } from 'vitest';
import { ServedCertificates } from './served-certificates.ts';

function members(showing: Record<string, string | undefined>) {
  const looks: string[] = [];
  const shown = new ServedCertificates();
  const look = (expected: string) =>
    shown.look('ns/db client', expected, Object.keys(showing), (endpoint) => {
      looks.push(endpoint);
      return Promise.resolve(showing[endpoint]);
    });
  const behind = async (expected: string): Promise<readonly string[]> => (await look(expected)).behind;
  return { behind, look, looks, showing, shown };
}

test('who shows the new certificate is looked at no more, who shows the old one again and again', async () => {
  const { behind, looks, showing } = members({ a: 'new', b: 'old' });
  expect([await behind('new'), looks.join()]).toEqual([['b'], 'a,b']);
  expect([await behind('new'), looks.join()]).toEqual([['b'], 'a,b,b']);
  showing['b'] = 'new';
  expect([await behind('new'), await behind('new'), looks.join()]).toEqual([[], [], 'a,b,b,b']);
  expect([await behind('newer'), looks.length]).toEqual([['a', 'b'], 6]);
});

test('who cannot be looked at is not accused and proves nothing, and is looked at next time', async () => {
  const { look, looks } = members({ a: undefined, b: 'new' });
  const nothing = { behind: [], unseen: ['a'] };
  expect([await look('new'), await look('new'), looks.join()]).toEqual([nothing, nothing, 'a,b,a']);
});

test('who showed the old one and cannot be looked at has not got the new one yet', async () => {
  const { look, showing } = members({ a: 'old' });
  await look('old');
  showing['a'] = undefined;
  const still = { behind: ['a'], unseen: ['a'] };
  expect([await look('new'), await look('new')]).toEqual([still, still]);
  showing['a'] = 'new';
  expect(await look('new')).toEqual({ behind: [], unseen: [] });
});

test('nothing is known of a cluster that is gone', async () => {
  const { behind, looks, shown } = members({ a: 'new' });
  await behind('new');
  shown.forget('ns/db client');
  await behind('new');
  expect(looks.length).toBe(2);
});
