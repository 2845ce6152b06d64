/** A bucket behind TLS with a CA of the user's own. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createCA } from '../../local/pki.ts';
import { openStore } from '../../src/agent/stores/store.ts';
import { MOUNTS } from '../../src/domain/agent-task.ts';
import { reader, startS3, type TestPlace } from '../support/servers/stores.ts';
import { bytes, failure, get, MIB, open, put } from './stores-world.ts';

let world: TestPlace & { readonly place: { readonly kind: 's3' } };
beforeAll(async () => {
  world = (await startS3({ tls: true })) as typeof world;
}, 600_000);
afterAll(async () => world?.close());

test('with its CA it works like any other', async () => {
  const store = await open(world);
  await put(store, 'tls.db', bytes(9 * MIB));
  expect(await get(store, 'tls.db')).toHaveLength(9 * MIB);
});

test('without its CA, or with another one, nothing is sent, and the message names the certificate', async () => {
  const other = { ...world.secrets, [`${MOUNTS.storeCa}/ca.crt`]: (await createCA()).cert };
  const untrusting = [
    await openStore({ ...world.place, ca: false }, reader(world.secrets)),
    await openStore(world.place, reader(other)),
  ];
  for (const store of untrusting) {
    const { reason, message } = await failure(put(store, 'never.db', bytes(10)));
    expect(reason).toBe('Misconfigured');
    expect(message).toContain('certificate');
  }
});
