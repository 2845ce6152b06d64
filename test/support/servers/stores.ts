/** Local stores for snapshots: an S3 server, the emulators of two clouds, and a folder. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import dns from 'node:dns';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent as HttpsAgent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { BlobServiceClient, StorageSharedKeyCredential } from '@azure/storage-blob';
import { request, Agent as UndiciAgent } from 'undici';
import { build } from '../../../local/binaries.ts';
import { createCA } from '../../../local/pki.ts';
import type { ReadSecret } from '../../../src/agent/stores/store.ts';
import { MOUNTS, type Place } from '../../../src/domain/agent-task.ts';
import { type Relay, relayTo } from '../faults/relay.ts';
import { type Child, eventually, freePort, Processes } from './processes.ts';

/** Files of Secrets by `<mount>/<key>`. */
export type Secrets = Readonly<Record<string, string>>;

export interface TestPlace {
  readonly place: Place;
  readonly secrets: Secrets;
  /** Of another account, or with another password, where the service checks credentials at all. */
  readonly wrongSecrets?: Secrets;
  /** Where the service keeps its files. */
  readonly folder: string;
  /** The relay between agents and the service; a folder has none. */
  readonly relay?: Relay;
  /** Kills the service; its data is still there when it is started again. */
  readonly kill?: () => Promise<void>;
  readonly restart?: () => Promise<void>;
  close(): Promise<void>;
}

export const BUCKET = 'backups';

/** For openStore. */
export const reader =
  (secrets: Secrets): ReadSecret =>
  async (mount, key) => {
    const text = secrets[`${mount}/${key}`];
    return text === undefined ? undefined : Buffer.from(text);
  };

export const credentials = (files: Secrets): Secrets =>
  Object.fromEntries(Object.entries(files).map(([key, value]) => [`${MOUNTS.credentials}/${key}`, value]));

interface Service {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Whether it serves already. */
  ready(): Promise<boolean>;
}

const temporary = (name: string): string => mkdtempSync(join(tmpdir(), `etcd-operator-${name}-`));

/** Starts it, and returns how to control it. */
async function serve(service: Service): Promise<{
  readonly kill: () => Promise<void>;
  readonly restart: () => Promise<void>;
  readonly close: () => Promise<void>;
}> {
  const processes = new Processes(service.folder);
  let child: Child | undefined;
  const restart = async (): Promise<void> => {
    child = processes.start(service.name, service.command, service.args, { ...process.env, ...service.env });
    await eventually(`${service.name} serves`, async () => ((await service.ready()) ? true : undefined), {
      timeoutMs: 60_000,
      seen: () => child?.log().slice(-2000),
    });
  };
  await restart();
  return {
    restart,
    kill: async () => child?.stop('SIGKILL'),
    close: async () => {
      await processes.stopAll();
      rmSync(service.folder, { recursive: true, force: true });
    },
  };
}

const flags = (values: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);

const answers = async (url: string, ca?: string): Promise<boolean> => {
  const { body } = await request(url, {
    ...(ca !== undefined && { dispatcher: new UndiciAgent({ connect: { ca } }) }),
  });
  await body.dump();
  return true;
};

export interface S3Options {
  /** The server serves a certificate of a CA that only the place names. */
  readonly tls?: boolean;
  /** Buckets can keep versions. */
  readonly versions?: boolean;
  /** The bucket is in the name of the host, as most cloud services want it. */
  readonly virtualHosts?: boolean;
}

const VIRTUAL_DOMAIN = 's3.test';

/** In this process, the domain and all names below it are this machine. */
function resolveVirtualHosts(): void {
  const { lookup } = dns;
  const local = (host: string): string => (host.endsWith(VIRTUAL_DOMAIN) ? '127.0.0.1' : host);
  dns.lookup = Object.assign(
    (host: string, ...rest: readonly unknown[]) => Reflect.apply(lookup, dns, [local(host), ...rest]),
    lookup,
  );
}

export function startVirtualS3(): Promise<TestPlace> {
  resolveVirtualHosts();
  return startS3({ virtualHosts: true });
}

export async function startS3({
  tls = false,
  versions = false,
  virtualHosts = false,
}: S3Options = {}): Promise<TestPlace> {
  const { versitygw } = await build(['versitygw']);
  const folder = temporary('s3');
  const [data, port] = [join(folder, 'data'), await freePort()];
  mkdirSync(data);
  const versioning = versions ? ['--versioning-dir', join(folder, 'versions')] : [];
  if (versions) mkdirSync(join(folder, 'versions'));
  const [access, secret] = ['tester', randomBytes(16).toString('hex')] as const;
  const own = tls ? await certificateIn(folder, 's3') : undefined;
  const certificate = own ? flags({ cert: own.cert, key: own.key }) : [];
  const relay = await relayTo(port);
  const [scheme, address] = [tls ? 'https' : 'http', `127.0.0.1:${relay.port}`];
  const endpoint = `${scheme}://${virtualHosts ? `${VIRTUAL_DOMAIN}:${relay.port}` : address}`;
  const virtual = virtualHosts ? flags({ 'virtual-domain': VIRTUAL_DOMAIN }) : [];
  const client = adminOf(`${scheme}://${address}`, [access, secret], own?.ca);
  const service = await serve({
    name: 'versitygw',
    command: join(versitygw, 'versitygw'),
    args: [
      '--port',
      `127.0.0.1:${port}`,
      ...certificate,
      ...virtual,
      '--keep-alive',
      '--quiet',
      'posix',
      ...versioning,
      data,
    ],
    env: { ROOT_ACCESS_KEY: access, ROOT_SECRET_KEY: secret },
    folder,
    ready: () => hasBucket(client),
  });
  return {
    place: {
      kind: 's3',
      endpoint,
      bucket: BUCKET,
      region: 'us-east-1',
      forcePathStyle: !virtualHosts,
      credentials: 'secret',
      ca: tls,
      checksums: 'whenRequired',
    },
    secrets: {
      ...credentials({ AWS_ACCESS_KEY_ID: access, AWS_SECRET_ACCESS_KEY: `${secret}\n` }),
      ...(own && { [`${MOUNTS.storeCa}/ca.crt`]: own.ca }),
    },
    wrongSecrets: credentials({ AWS_ACCESS_KEY_ID: access, AWS_SECRET_ACCESS_KEY: 'wrong' }),
    relay,
    ...service,
    folder: data,
    close: closing(relay, service.close),
  };
}

async function hasBucket(client: S3Client): Promise<boolean> {
  await client.send(new CreateBucketCommand({ Bucket: BUCKET })).catch((error: Error) => {
    if (!error.name.startsWith('BucketAlready')) throw error;
  });
  return true;
}

const adminOf = (endpoint: string, [accessKeyId, secretAccessKey]: readonly [string, string], ca?: string): S3Client =>
  new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    ...(ca !== undefined && { requestHandler: { httpsAgent: { ca } } }),
  });

const closing = (relay: Relay, close: () => Promise<void>) => async (): Promise<void> => {
  await relay.cut();
  await close();
};

/** A certificate for loopback in files, and its CA. */
async function certificateIn(folder: string, user: string) {
  const ca = await createCA();
  const { cert, key } = await ca.issue({ user }, ['localhost', '127.0.0.1']);
  const files = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key') };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key);
  return { ca: ca.cert, ...files };
}

/** A bucket at this endpoint, and the key of a service account that any test server accepts. */
export function gcsPlace(endpoint: string) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const key = {
    type: 'service_account',
    client_email: 'tester@project.iam.gserviceaccount.com',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    private_key_id: '1',
  };
  return {
    place: { kind: 'gcs', bucket: BUCKET, endpoint, credentials: 'secret' } satisfies Place,
    secrets: credentials({ 'credentials.json': JSON.stringify(key), GCS_ENDPOINT: endpoint }),
  };
}

/** Accepts all credentials. */
export async function startGcs({ tls = false }: Pick<S3Options, 'tls'> = {}): Promise<TestPlace> {
  const { 'fake-gcs-server': bin } = await build(['fake-gcs-server']);
  const folder = temporary('gcs');
  const [data, port] = [join(folder, 'data'), await freePort()];
  mkdirSync(join(data, BUCKET), { recursive: true });
  const own = tls ? await certificateIn(folder, 'gcs') : undefined;
  const relay = await relayTo(port);
  const endpoint = `${own ? 'https' : 'http'}://127.0.0.1:${relay.port}`;
  const service = await serve({
    name: 'fake-gcs-server',
    command: join(bin, 'fake-gcs-server'),
    args: flags({
      scheme: own ? 'https' : 'http',
      ...(own && { 'cert-location': own.cert, 'private-key-location': own.key }),
      host: '127.0.0.1',
      port: String(port),
      'external-url': endpoint,
      backend: 'filesystem',
      'filesystem-root': data,
      'log-level': 'error',
    }),
    folder,
    ready: () => answers(`${own ? 'https' : 'http'}://127.0.0.1:${port}/storage/v1/b`, own?.ca),
  });
  const { place, secrets } = gcsPlace(endpoint);
  return {
    place: { ...place, ...(own && { ca: true }) },
    secrets: { ...secrets, ...(own && { [`${MOUNTS.storeCa}/ca.crt`]: own.ca }) },
    relay,
    ...service,
    folder: data,
    close: closing(relay, service.close),
  };
}

export async function startAzure({ tls = false }: Pick<S3Options, 'tls'> = {}): Promise<TestPlace> {
  const { azurite } = await build(['azurite']);
  const folder = temporary('azure');
  const [data, port] = [join(folder, 'data'), await freePort()];
  mkdirSync(data);
  const [account, key] = ['tester', randomBytes(64).toString('base64')];
  const relay = await relayTo(port);
  const own = tls ? await certificateIn(folder, 'azure') : undefined;
  const endpoint = `${own ? 'https' : 'http'}://127.0.0.1:${relay.port}/${account}`;
  const options = { retryOptions: {}, ...(own && { agent: new HttpsAgent({ ca: own.ca }) }) };
  const client = new BlobServiceClient(endpoint, new StorageSharedKeyCredential(account, key), options);
  const program = join(azurite, 'node_modules', 'azurite', 'dist', 'src', 'blob', 'main.js');
  const service = await serve({
    name: 'azurite',
    command: process.execPath,
    args: [
      program,
      ...flags({ blobHost: '127.0.0.1', blobPort: String(port), location: data }),
      '--silent',
      '--skipApiVersionCheck',
      '--disableTelemetry',
      ...(own ? flags({ cert: own.cert, key: own.key }) : []),
    ],
    env: { AZURITE_ACCOUNTS: `${account}:${key}` },
    folder,
    ready: async () => (await client.getContainerClient(BUCKET).createIfNotExists()).requestId !== undefined,
  });
  const files = { AZURE_STORAGE_ACCOUNT: account, AZURE_STORAGE_KEY: key };
  return {
    place: { kind: 'azure', container: BUCKET, endpoint, credentials: 'secret', ...(own && { ca: true }) },
    secrets: { ...credentials(files), ...(own && { [`${MOUNTS.storeCa}/ca.crt`]: own.ca }) },
    wrongSecrets: credentials({ ...files, AZURE_STORAGE_KEY: randomBytes(64).toString('base64') }),
    relay,
    ...service,
    folder: data,
    close: closing(relay, service.close),
  };
}

export async function startVolume(): Promise<TestPlace> {
  const folder = temporary('volume');
  return {
    place: { kind: 'pvc', root: folder },
    secrets: {},
    folder,
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
}
