/** The configuration of the client for S3 and compatible services. */
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { MOUNTS, type Place } from '../../domain/agent-task.ts';
import { misconfigured } from '../failure.ts';
import { checkEndpoint, httpAgent, httpsAgent } from '../transfer/ssrf-guard.ts';
import { trusting } from './ca.ts';
import type { ReadSecret } from './store.ts';

export type S3Place = Extract<Place, { readonly kind: 's3' }>;

const CONNECT_MS = 10_000;
/** Without a byte in either direction. */
const SILENCE_MS = 60_000;

/**
 * The SDK takes some names of buckets for those of another service, and asks hosts of Amazon whatever the endpoint is: `…--op-s3`.
 * The administrator's list of endpoints would not apply.
 */
export async function s3Client(place: S3Place, secrets: ReadSecret): Promise<S3Client> {
  const config = await s3Config(place, secrets);
  const { hostname: own } = new URL(endpointUrl(place.endpoint));
  const client = new S3Client(config);
  client.middlewareStack.add(
    (next) => (args) => {
      const { hostname = '' } = args.request as { readonly hostname?: string };
      if (hostname !== own && !hostname.endsWith(`.${own}`))
        throw misconfigured(
          `the name of the bucket "${place.bucket}" stands for the host ${hostname}, and the endpoint is ${own}: use a bucket of the endpoint`,
        );
      return next(args);
    },
    { step: 'finalizeRequest', priority: 'low', name: 'staysAtEndpoint' },
  );
  return client;
}

export async function s3Config(place: S3Place, secrets: ReadSecret): Promise<S3ClientConfig> {
  const checksums = place.checksums === 'whenSupported' ? 'WHEN_SUPPORTED' : 'WHEN_REQUIRED';
  return {
    endpoint: endpointUrl(place.endpoint),
    region: place.region,
    forcePathStyle: place.forcePathStyle,
    // Ceph and others refuse the checksums that the SDK would add as trailers.
    requestChecksumCalculation: checksums,
    responseChecksumValidation: checksums,
    maxAttempts: 1, // retries: see retry.ts
    followRegionRedirects: false, // the operator of one endpoint must not redirect us to another
    requestHandler: {
      connectionTimeout: CONNECT_MS,
      socketTimeout: SILENCE_MS,
      httpAgent: httpAgent(),
      httpsAgent: httpsAgent(await trusting(place, secrets)),
    },
    ...(place.credentials === 'secret' && { credentials: await credentials(secrets) }),
  };
}

function endpointUrl(endpoint: string): string {
  const url = URL.parse(endpoint.includes('://') ? endpoint : `https://${endpoint}`);
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw misconfigured('the endpoint of the bucket is not a URL such as https://s3.example.org');
  checkEndpoint(url);
  return url.href;
}

async function credentials(secrets: ReadSecret): Promise<NonNullable<S3ClientConfig['credentials']>> {
  const read = async (key: string): Promise<string> =>
    (await secrets(MOUNTS.credentials, key))?.toString('utf8').trim() ?? '';
  const needed = async (key: string): Promise<string> => {
    const value = await read(key);
    if (value === '') throw misconfigured(`the Secret with the credentials of the bucket has no "${key}": add it`);
    return value;
  };
  const sessionToken = await read('AWS_SESSION_TOKEN');
  return {
    accessKeyId: await needed('AWS_ACCESS_KEY_ID'),
    secretAccessKey: await needed('AWS_SECRET_ACCESS_KEY'),
    ...(sessionToken !== '' && { sessionToken }),
  };
}
