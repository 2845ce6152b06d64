import { expect, test } from 'vitest';
import { MOUNTS } from '../../domain/agent-task.ts';
import { AgentFailure } from '../failure.ts';
import { type S3Place, s3Config } from './s3-client.ts';

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
