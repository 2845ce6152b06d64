import { HeadObjectCommand } from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { MOUNTS } from '../../domain/agent-task.ts';
import { AgentFailure } from '../failure.ts';
import { type S3Place, s3Client, s3Config } from './s3-client.ts';

const place: S3Place = {
  kind: 's3',
  endpoint: 'https://s3.example.org',
  bucket: 'backups',
  region: 'eu-west-1',
  forcePathStyle: false,
  credentials: 'secret',
  ca: false,
  checksums: 'whenRequired',
};
const KEYS = { AWS_ACCESS_KEY_ID: 'id\n', AWS_SECRET_ACCESS_KEY: ' secret\n' };

const config = (change: Partial<S3Place> = {}, keys: Readonly<Record<string, string>> = KEYS, ca?: string) =>
  s3Config({ ...place, ...change }, async (mount, key) => {
    const text = mount === MOUNTS.credentials ? keys[key] : key === 'ca.crt' ? ca : undefined;
    return text === undefined ? undefined : Buffer.from(text);
  });

const refusal = async (work: Promise<unknown>): Promise<string> => {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(AgentFailure);
  expect(error).toMatchObject({ reason: 'Misconfigured' });
  return (error as Error).message;
};

test('the keys of the Secret are trimmed, and a session token is used if there is one', async () => {
  expect((await config()).credentials).toEqual({ accessKeyId: 'id', secretAccessKey: 'secret' });
  expect((await config({}, { ...KEYS, AWS_SESSION_TOKEN: 'token\n' })).credentials).toEqual({
    accessKeyId: 'id',
    secretAccessKey: 'secret',
    sessionToken: 'token',
  });
});

test('without a Secret the cloud credentials of the Pod are used', async () => {
  expect(await config({ credentials: 'ambient' }, {})).not.toHaveProperty('credentials');
});

test('a Secret with a missing key is reported with that key', async () => {
  expect(await refusal(config({}, { AWS_ACCESS_KEY_ID: 'id' }))).toContain('AWS_SECRET_ACCESS_KEY');
  expect(await refusal(config({}, { AWS_ACCESS_KEY_ID: ' ', AWS_SECRET_ACCESS_KEY: 'x' }))).toContain(
    'AWS_ACCESS_KEY_ID',
  );
});

test('checksums are added only when configured; the library follows no redirect and does not retry', async () => {
  expect(await config()).toMatchObject({
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    followRegionRedirects: false,
    maxAttempts: 1,
  });
  expect(await config({ checksums: 'whenSupported' })).toMatchObject({ requestChecksumCalculation: 'WHEN_SUPPORTED' });
});

test('a given CA is trusted in addition to the public ones', async () => {
  const pem = '-----BEGIN CERTIFICATE-----\nour own\n-----END CERTIFICATE-----\n';
  const { requestHandler } = await config({ ca: true }, KEYS, pem);
  const { ca } = (requestHandler as { readonly httpsAgent: { readonly options: { readonly ca: string[] } } }).httpsAgent
    .options;
  expect(ca[0]).toBe(pem);
  expect(ca.length).toBeGreaterThan(20);
  expect(await refusal(config({ ca: true }, KEYS, 'no certificate'))).toContain('ca.crt');
  expect(await refusal(config({ ca: true }, KEYS))).toContain('ca.crt');
});

test.each(['ftp://s3.example.org', 'https://user:password@s3.example.org', 'https://', 'https://s3.example.org/?x=1'])(
  'an endpoint %s is refused, and not repeated: it may have a password in it',
  async (endpoint) => {
    expect(await refusal(config({ endpoint }))).not.toContain('password');
  },
);

test('an endpoint without a scheme uses TLS', async () => {
  expect(await config({ endpoint: 's3.example.org:9000' })).toMatchObject({ endpoint: 'https://s3.example.org:9000/' });
});

const ACCOUNT = '123456789012';
test.each<[bucket: string, host: string | undefined, endpoint?: string]>([
  ['backups', 'backups.s3.example.org'],
  ['backups', '192.0.2.1', 'http://192.0.2.1:9000/below'],
  ['backups', '[2001:db8::1]', 'http://[2001:db8::1]:9000'],
  ['backups', 'backups.s3.example.org', 'HTTPS://S3.Example.org'],
  [`arn:aws:s3:eu-west-1:${ACCOUNT}:accesspoint:backups`, `backups-${ACCOUNT}.s3.example.org`],
  ['backups--use1-az1--x-s3', 'backups--use1-az1--x-s3.s3.example.org'],
  ['a.b', 's3.example.org'],
  ['ap-o0b1d075431d83bebde8xz5w8ijx1qzlbp3i3kuse10--op-s3', undefined],
  ['ap-e0b1d075431d83bebde8xz5w8ijx1qzlbp3i3kuse10--op-s3', undefined],
])('S4: requests for the bucket %s stay at the endpoint', async (bucket, expected, endpoint = place.endpoint) => {
  const client = await s3Client({ ...place, bucket, endpoint }, async (_mount, key) =>
    Buffer.from((KEYS as Readonly<Record<string, string>>)[key] ?? ''),
  );
  const asked: string[] = [];
  client.config.requestHandler.handle = (request: { readonly hostname: string }) => {
    asked.push(request.hostname);
    return Promise.reject(new Error('the host is known'));
  };
  const error: unknown = await client
    .send(new HeadObjectCommand({ Bucket: bucket, Key: 'k' }))
    .catch((e: unknown) => e);
  expect([...new Set(asked)]).toEqual(expected === undefined ? [] : [expected]);
  if (expected === undefined) expect(error).toMatchObject({ reason: 'Misconfigured' });
});
