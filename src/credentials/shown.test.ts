import { expect, test } from 'vitest';
import { Shown } from './shown.ts';

function members(showing: Record<string, string | undefined>) {
  const looks: string[] = [];
  const shown = new Shown();
  const behind = (expected: string): Promise<readonly string[]> =>
    shown.behind('ns/db', expected, Object.keys(showing), (endpoint) => {
      looks.push(endpoint);
      return Promise.resolve(showing[endpoint]);
    });
  return { behind, looks, showing, shown };
}

test('who shows the new certificate is looked at no more, who shows the old one again and again', async () => {
  const { behind, looks, showing } = members({ a: 'new', b: 'old' });
  expect([await behind('new'), looks.join()]).toEqual([['b'], 'a,b']);
  expect([await behind('new'), looks.join()]).toEqual([['b'], 'a,b,b']);
  showing['b'] = 'new';
  expect([await behind('new'), await behind('new'), looks.join()]).toEqual([[], [], 'a,b,b,b']);
  expect([await behind('newer'), looks.length]).toEqual([['a', 'b'], 6]);
});

test('who cannot be looked at is not accused, and is looked at next time', async () => {
  const { behind, looks } = members({ a: undefined });
  expect([await behind('new'), await behind('new'), looks.length]).toEqual([[], [], 2]);
});

test('nothing is known of a cluster that is gone', async () => {
  const { behind, looks, shown } = members({ a: 'new' });
  await behind('new');
  shown.forget('ns/db');
  await behind('new');
  expect(looks.length).toBe(2);
});
