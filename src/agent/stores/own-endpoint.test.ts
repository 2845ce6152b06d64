import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { azureContainer } from './azure-client.ts';
import { gcsClient } from './gcs-client.ts';
import { requireOwn } from './own-endpoint.ts';

const nothing = async (): Promise<undefined> => undefined;
const refused = expect.objectContaining({ reason: 'Misconfigured' });

test.each([
  ['https://storage.googleapis.com', true],
  ['https://storage.europe-west3.rep.googleapis.com', true],
  ['http://storage.googleapis.com', false],
  ['https://storage.googleapis.com.example.org', false],
  ['https://evilgoogleapis.com', false],
  ['https://example.org/storage.googleapis.com', false],
])('%s belongs to that cloud: %s', (endpoint, own) => {
  const ask = (): void => requireOwn(new URL(endpoint), ['.googleapis.com']);
  if (own) expect(ask).not.toThrow();
  else expect(ask).toThrow(refused);
});

test('the token of the Pod is not sent to a foreign endpoint of a bucket', async () => {
  const place = { kind: 'gcs', bucket: 'b', credentials: 'ambient' } as const;
  await expect(gcsClient({ ...place, endpoint: 'https://example.org' }, nothing)).rejects.toEqual(refused);
  await expect(gcsClient(place, nothing)).resolves.toBeDefined();
});

test('nor to a foreign endpoint of a container', async () => {
  const place = { kind: 'azure', container: 'c', credentials: 'ambient' } as const;
  await expect(azureContainer({ ...place, endpoint: 'https://example.org' }, nothing)).rejects.toEqual(refused);
});

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const serviceAccount = JSON.stringify({ type: 'service_account', client_email: 'a@b', private_key: privateKey });
const reading = (files: Readonly<Record<string, string>>) => async (_mount: string, key: string) => buffer(files[key]);

describe('S4: a credential that works for everybody who sees it', () => {
  const bucket = { kind: 'gcs', bucket: 'b', credentials: 'secret' } as const;
  const container = { kind: 'azure', container: 'c', credentials: 'secret' } as const;
  const key = { 'credentials.json': serviceAccount };
  const sas = { AZURE_STORAGE_ACCOUNT: 'account1', AZURE_STORAGE_SAS_TOKEN: 'sig=secret' };

  test.each([
    ['https://storage.googleapis.com', {}, true],
    ['https://evil.example.org', {}, false],
    ['http://storage.googleapis.com', {}, false],
    ['https://gcs.example.org:8443', { GCS_ENDPOINT: 'https://gcs.example.org:8443/' }, true],
    ['https://evil.example.org', { GCS_ENDPOINT: 'https://gcs.example.org' }, false],
    ['http://gcs.example.org', { GCS_ENDPOINT: 'https://gcs.example.org' }, false],
  ])('such as a token of a service account is sent to %s with %j: %s', async (endpoint, named, sent) => {
    const client = gcsClient({ ...bucket, endpoint }, reading({ ...key, ...named }));
    if (sent) await expect(client).resolves.toBeDefined();
    else await expect(client).rejects.toEqual(refused);
  });

  test.each([
    ['https://account1.blob.core.windows.net', {}, true],
    ['https://evil.example.org', {}, false],
    ['http://account1.blob.core.windows.net', {}, false],
    ['http://azurite:10000/account1', { AZURE_STORAGE_ENDPOINT: 'http://azurite:10000' }, true],
    ['https://evil.example.org', { AZURE_STORAGE_ENDPOINT: 'http://azurite:10000' }, false],
  ])('such as a SAS token is sent to %s with %j: %s', async (endpoint, named, sent) => {
    const client = azureContainer({ ...container, endpoint }, reading({ ...sas, ...named }));
    if (sent) await expect(client).resolves.toBeDefined();
    else await expect(client).rejects.toEqual(refused);
  });

  test('is not such as a shared key, which only signs: it is used at any endpoint', async () => {
    const shared = { AZURE_STORAGE_ACCOUNT: 'account1', AZURE_STORAGE_KEY: Buffer.from('key').toString('base64') };
    await expect(
      azureContainer({ ...container, endpoint: 'https://example.org' }, reading(shared)),
    ).resolves.toBeDefined();
  });
});

test.each(['example.org/', 'example.org#', 'example.org:443/x', 'a', 'UPPER'])(
  'what cannot be an account is no host either: %s',
  async (account) => {
    const files: Readonly<Record<string, string>> = { AZURE_STORAGE_SAS_TOKEN: 'sig=secret' };
    const place = { kind: 'azure', container: 'c', credentials: 'secret', account } as const;
    await expect(azureContainer(place, async (_mount, key) => buffer(files[key]))).rejects.toEqual(refused);
    const fine = await azureContainer({ ...place, account: 'account1' }, async (_mount, key) => buffer(files[key]));
    expect(new URL(fine.url).host).toBe('account1.blob.core.windows.net');
  },
);

const buffer = (text: string | undefined): Buffer | undefined => (text === undefined ? undefined : Buffer.from(text));
