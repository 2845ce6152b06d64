import { generateKeyPairSync } from 'node:crypto';
import dns from 'node:dns';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Place } from '../../domain/agent-task.ts';
import { azureContainer } from '../stores/azure-client.ts';
import { openStore } from '../stores/store.ts';
import { checkEndpoint } from './ssrf-guard.ts';

test.each([
  ['http://169.254.169.254', true],
  ['http://169.254.170.2/', true],
  ['http://2852039166', true],
  ['http://0xa9fea9fe/', true],
  ['http://[fe80::1]', true],
  ['http://[fd00:ec2::254]:80', true],
  ['http://[::ffff:169.254.169.254]', true],
  ['http://[64:ff9b::a9fe:a9fe]', true],
  ['http://100.100.100.200', true],
  ['http://168.63.129.16', true],
  ['http://192.0.0.192/', true],
  ['http://[64:ff9b::100.100.100.200]', true],
  ['http://[::ffff:168.63.129.16]', true],
  ['http://0.0.0.0:2379', true],
  ['http://0/', true],
  ['http://[::]:2379', true],
  ['http://224.0.0.1', true],
  ['http://255.255.255.255', true],
  ['http://[ff02::1]', true],
  ['http://10.96.0.1', true],
  ['http://[::ffff:10.96.0.1]', true],
  ['http://[64:ff9b::10.96.0.1]', true],
  ['http://10.0.0.1', false],
  ['http://127.0.0.1:9000', false],
  ['http://[fd00::1]', false],
  ['https://s3.example.org', false],
])('S4: %s is refused: %s', (endpoint, refused) => {
  vi.stubEnv('KUBERNETES_SERVICE_HOST', '10.96.0.1');
  const check = (): void => checkEndpoint(new URL(endpoint));
  if (refused) expect(check).toThrow('the address of a cloud metadata service');
  else expect(check).not.toThrow();
  vi.unstubAllEnvs();
});

test('S4: an API server with an IPv6 address is refused in every spelling', () => {
  vi.stubEnv('KUBERNETES_SERVICE_HOST', 'fd00:0010:0096::0001');
  expect(() => checkEndpoint(new URL('https://[fd00:10:96::1]'))).toThrow('the API server');
  expect(() => checkEndpoint(new URL('https://[fd00:10:96::2]'))).not.toThrow();
  vi.unstubAllEnvs();
});

test('S4: the endpoint in a connection string is compared with the list of the administrator', async () => {
  const connection = (host: string) =>
    `DefaultEndpointsProtocol=https;BlobEndpoint=https://${host}/c;AccountName=account1;AccountKey=${Buffer.from('key').toString('base64')}`;
  const opened = (host: string) =>
    azureContainer({ kind: 'azure', container: 'c', credentials: 'secret' }, async (_mount, key) =>
      key === 'AZURE_STORAGE_CONNECTION_STRING' ? Buffer.from(connection(host)) : undefined,
    );
  vi.stubEnv('AGENT_STORE_ENDPOINTS', '["*.blob.core.windows.net"]');
  await expect(opened('evil.example.com')).rejects.toThrow('the store evil.example.com is not in the list');
  await expect(opened('account1.blob.core.windows.net')).resolves.toBeDefined();
  vi.unstubAllEnvs();
  await expect(opened('evil.example.com')).resolves.toBeDefined();
});

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const FILES: Readonly<Record<string, string>> = {
  AWS_ACCESS_KEY_ID: 'id',
  AWS_SECRET_ACCESS_KEY: 'secret',
  'credentials.json': JSON.stringify({ type: 'service_account', client_email: 'a@b', private_key: privateKey }),
  AZURE_STORAGE_ACCOUNT: 'account',
  AZURE_STORAGE_KEY: Buffer.from('key').toString('base64'),
};

const places = (endpoint: string): readonly Place[] => [
  {
    kind: 's3',
    endpoint,
    bucket: 'b',
    region: 'us-east-1',
    forcePathStyle: false,
    credentials: 'secret',
    ca: false,
    checksums: 'whenRequired',
  },
  { kind: 'gcs', bucket: 'b', endpoint, credentials: 'secret' },
  { kind: 'azure', container: 'b', endpoint, credentials: 'secret' },
];

const NAMED: Readonly<Record<string, string>> = { gcs: 'GCS_ENDPOINT' };
const look = async (place: Place): Promise<unknown> => {
  const store = await openStore(place, async (_mount, key) => {
    const isEndpoint = place.kind === 'gcs' && key === NAMED[place.kind];
    const text = isEndpoint ? place.endpoint : FILES[key];
    return text === undefined ? undefined : Buffer.from(text);
  });
  return store.head('key');
};
const refused = expect.objectContaining({
  reason: 'Misconfigured',
  message: expect.stringContaining('cloud metadata service'),
});

describe.each(['s3', 'gcs', 'azure'])('a store of %s', (kind) => {
  const at = (endpoint: string): Place => places(endpoint).find((each) => each.kind === kind) as Place;
  let server: Server;
  let asked = 0;
  beforeAll(async () => {
    server = createServer((_request, response) => {
      asked += 1;
      response.writeHead(403).end();
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  });
  afterAll(() => void server.close());
  afterEach(() => void vi.restoreAllMocks());

  /** Every name resolves to this address. */
  const leadTo = (address: string): void => {
    const answer = ((_host: string, _options: object, done: (...said: unknown[]) => void) =>
      done(null, [{ address, family: address.includes(':') ? 6 : 4 }])) as unknown as typeof dns.lookup;
    vi.spyOn(dns, 'lookup').mockImplementation(answer);
  };

  test('S4: is the only host that gets a request, whatever path the endpoint has: a token would go elsewhere', async () => {
    let elsewhere = 0;
    const other = createServer((_request, response) => {
      elsewhere += 1;
      response.writeHead(403).end();
    });
    await new Promise<void>((done) => other.listen(0, '127.0.0.1', done));
    const [own, foreign] = [server, other].map((each) => `127.0.0.1:${(each.address() as AddressInfo).port}`);
    asked = 0;
    for (const path of [`//${foreign}`, `//${foreign}/`, `/\\${foreign}`, `/%2f${foreign}`, `/x//${foreign}`])
      await look(at(`http://${own}${path}`)).catch(() => undefined);
    other.close();
    expect([asked > 0, elsewhere]).toEqual([true, 0]);
  });

  test.each(['http', 'https'])('is refused at the address of a metadata service (%s)', async (scheme) => {
    await expect(look(at(`${scheme}://169.254.169.254`))).rejects.toEqual(refused);
  });

  test.each(['http', 'https'])('is refused at a name that resolves there (%s)', async (scheme) => {
    leadTo('169.254.169.254');
    await expect(look(at(`${scheme}://store.example.org`))).rejects.toEqual(refused);
  });

  test.each(['100.100.100.200', '168.63.129.16', '192.0.0.192', '0.0.0.0', 'fd00:ec2::254'])(
    'S4: is refused at a name that resolves to %s, and nothing connects to it',
    async (address) => {
      leadTo(address);
      asked = 0;
      const { port } = server.address() as AddressInfo;
      await expect(look(at(`http://store.example.org:${port}`))).rejects.toEqual(refused);
      expect(asked).toBe(0);
    },
  );

  test('is connected to where a name resolves to another address', async () => {
    leadTo('127.0.0.1');
    asked = 0;
    const { port } = server.address() as AddressInfo;
    await expect(look(at(`http://store.example.org:${port}`))).rejects.toMatchObject({ reason: 'AccessDenied' });
    expect(asked).toBeGreaterThan(0);
  });
});
