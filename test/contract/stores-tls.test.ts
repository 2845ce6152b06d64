/** Stores behind TLS with a CA of the user's own. */
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCA } from '../../local/pki.ts';
import { openStore } from '../../src/agent/stores/store.ts';
import { MOUNTS, type Place } from '../../src/domain/agent-task.ts';
import { reader, startAzure, startGcs, startS3, type TestPlace } from '../support/servers/stores.ts';
import { bytes, failure, get, MIB, open, put } from './stores-world.ts';

const CA_FILE = `${MOUNTS.storeCa}/ca.crt`;

describe.each([
  ['S3', startS3],
  ['Google Cloud Storage', startGcs],
  ['Azure Blob Storage', startAzure],
] as const)('%s', (_, start) => {
  let world: TestPlace & { readonly place: Exclude<Place, { readonly kind: 'pvc' }> };
  beforeAll(async () => {
    world = (await start({ tls: true })) as typeof world;
  }, 600_000);
  afterAll(async () => world?.close());

  test.each([false, true])('with its CA it works like any other; as the only CA: %s', async (caOnly) => {
    const store = await openStore({ ...world.place, caOnly }, reader(world.secrets));
    const key = `tls-${caOnly}.db`;
    await put(store, key, bytes(9 * MIB));
    expect(await get(await open(world), key)).toHaveLength(9 * MIB);
  });

  const refused = async (place: Place, secrets: TestPlace['secrets']): Promise<void> => {
    const { reason, message } = await failure(put(await openStore(place, reader(secrets)), 'never.db', bytes(10)));
    expect(reason).toBe('Misconfigured');
    expect(message).toContain('certificate');
  };

  test('without its CA, or with another one, nothing is sent, and the message names the certificate', async () => {
    await refused({ ...world.place, ca: false }, world.secrets);
    await refused(world.place, { ...world.secrets, [CA_FILE]: (await createCA()).cert });
  });

  test('a certificate of a public CA is trusted beside an own CA, unless that is to replace the public ones', async () => {
    const known = getCACertificates('default');
    setDefaultCACertificates([...known, world.secrets[CA_FILE] ?? '']);
    try {
      const secrets = { ...world.secrets, [CA_FILE]: (await createCA('an internal CA')).cert };
      const both = await openStore(world.place, reader(secrets));
      await put(both, 'public.db', bytes(10));
      await refused({ ...world.place, caOnly: true }, secrets);
    } finally {
      setDefaultCACertificates(known);
    }
  });
});
