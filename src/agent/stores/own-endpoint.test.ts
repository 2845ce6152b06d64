import { expect, test } from 'vitest';
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
