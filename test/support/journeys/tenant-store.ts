/** A tenant's own S3 server: a test can kill it and inspect or damage its objects without affecting others. */
import { existsSync } from 'node:fs';
import { chmod, mkdir, open, readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { podProcesses, volumeFolder } from '../../../local/faults.ts';
import { S3_IMAGE } from '../../../local/images.ts';
import { createCA, issue } from '../../../src/pki/issue.ts';
import { systemKeySource } from '../../../src/pki/key-source.ts';
import type { Tenant } from './journey.ts';

const NAME = 's3';
const PORT = 7070;
const ROOT = 's3-root';
const CREDENTIALS = 's3-credentials';
const SERVED = 's3-served';
const CA_SECRET = 's3-ca';
const DAY = 24 * 60 * 60_000;
/** What the server stores for itself next to objects. */
const INTERNAL = '.sgwtmp';

export const BUCKET = 'backups';
const ACCESS_KEY = 'planted-access-key';
export const S3_SECRET_KEY = 'planted-s3-secret-key';

export const opaque = (
  tenant: Tenant,
  name: string,
  text: Readonly<Record<string, string | Buffer>>,
): Promise<void> => {
  const data = Object.fromEntries(Object.entries(text).map(([key, v]) => [key, Buffer.from(v).toString('base64')]));
  const metadata = { name, namespace: tenant.namespace };
  return tenant.cluster.apply([{ apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata, data }]);
};

export const claim = (tenant: Tenant, name: string, storage: string): Promise<void> =>
  tenant.cluster.apply([
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: tenant.namespace },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
    },
  ]);

/** The server runs as another user than this process. */
async function folderForAll(path: string): Promise<void> {
  if (existsSync(path)) return;
  await mkdir(path, { recursive: true });
  await chmod(path, 0o777);
}

/** Files of a volume like those of a store, by their paths. */
export class Files {
  readonly root: string;
  constructor(root: string) {
    this.root = root;
  }

  async all(): Promise<readonly string[]> {
    const entries = await readdir(this.root, { withFileTypes: true, recursive: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(this.root.length + 1))
      .filter((path) => !path.startsWith(`${INTERNAL}/`))
      .toSorted();
  }

  /** Parts of uploads that have not ended. */
  async pieces(): Promise<readonly string[]> {
    const folder = join(this.root, INTERNAL);
    if (!existsSync(folder)) return [];
    const entries = await readdir(folder, { withFileTypes: true, recursive: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  }

  read(path: string): Promise<Buffer> {
    return readFile(join(this.root, path));
  }

  async write(path: string, content: string | Buffer): Promise<void> {
    await folderForAll(dirname(join(this.root, path)));
    await writeFile(join(this.root, path), content); // overwrites the bytes; the attributes of an existing file stay
  }

  /** Flips one bit in the middle. The second call flips it back. */
  async flip(path: string): Promise<void> {
    const file = await open(join(this.root, path), 'r+');
    try {
      const at = Math.floor((await file.stat()).size / 2);
      const byte = Buffer.alloc(1);
      await file.read(byte, 0, 1, at);
      await file.write(Buffer.of((byte[0] ?? 0) ^ 1), 0, 1, at);
    } finally {
      await file.close();
    }
  }

  async cut(path: string, bytes: number): Promise<void> {
    await truncate(join(this.root, path), (await this.read(path)).length - bytes);
  }
}

export class TenantStore {
  readonly #tenant: Tenant;
  readonly #tls: boolean;
  /** The bucket's. */
  readonly files: Files;

  constructor(tenant: Tenant, tls: boolean, files: Files) {
    this.#tenant = tenant;
    this.#tls = tls;
    this.files = files;
  }

  /** As a destination with a key prefix, or as a source with the whole key. */
  at(key: string, change: Readonly<Record<string, unknown>> = {}): object {
    return {
      s3: {
        endpoint: `${this.#tls ? 'https' : 'http'}://${NAME}.${this.#tenant.namespace}.svc:${PORT}`,
        bucket: BUCKET,
        key,
        forcePathStyle: true,
        credentialsSecretRef: { name: CREDENTIALS },
        ...(this.#tls && { caSecretRef: { name: CA_SECRET } }),
        ...change,
      },
    };
  }

  /** The content of the tenant's Secret. */
  credentials(secretKey: string): Promise<void> {
    return opaque(this.#tenant, CREDENTIALS, { AWS_ACCESS_KEY_ID: ACCESS_KEY, AWS_SECRET_ACCESS_KEY: secretKey });
  }

  async processes(): Promise<readonly number[]> {
    const [pod] = await this.#tenant.list('pods', `app=${NAME}`);
    return podProcesses(this.#tenant.cluster, this.#tenant.namespace, pod?.metadata.name ?? '');
  }

  async stop(): Promise<void> {
    await this.#tenant.kubectl('scale', `deployment/${NAME}`, '--replicas=0');
    await this.#tenant.kubectl('wait', '--for=delete', 'pod', '-l', `app=${NAME}`, '--timeout=60s');
  }

  async start(): Promise<void> {
    await this.#tenant.kubectl('scale', `deployment/${NAME}`, '--replicas=1');
    await this.#tenant.kubectl('rollout', 'status', `deployment/${NAME}`, '--timeout=240s');
  }
}

/** Starts the server with an empty bucket. */
export async function aStore(tenant: Tenant, { tls = false }: { readonly tls?: boolean } = {}): Promise<TenantStore> {
  await opaque(tenant, ROOT, { access: ACCESS_KEY, secret: S3_SECRET_KEY });
  if (tls) await certificate(tenant);
  await claim(tenant, NAME, '1Gi');
  await tenant.cluster.apply(server(tenant.namespace, tls));
  await tenant.kubectl('rollout', 'status', `deployment/${NAME}`, '--timeout=240s');
  const files = new Files(join(await volumeFolder(tenant.cluster, tenant.namespace, NAME), BUCKET));
  await folderForAll(files.root);
  const store = new TenantStore(tenant, tls, files);
  await store.credentials(S3_SECRET_KEY);
  return store;
}

/** A server certificate from its own CA. */
async function certificate(tenant: Tenant): Promise<void> {
  const ca = await createCA('the store', Date.now(), systemKeySource);
  const hosts = [`${NAME}.${tenant.namespace}.svc`];
  const leaf = { name: NAME, hosts, usages: ['server auth'], durationMs: DAY } as const;
  const { cert, key } = await issue(ca, leaf, Date.now(), systemKeySource);
  await opaque(tenant, SERVED, { 'tls.crt': cert, 'tls.key': key });
  await opaque(tenant, CA_SECRET, { 'ca.crt': ca.cert });
}

function server(namespace: string, tls: boolean): readonly object[] {
  const fromRoot = (name: string, key: string) => ({ name, valueFrom: { secretKeyRef: { name: ROOT, key } } });
  const labels = { app: NAME };
  const files = tls ? ['--cert', '/tls/tls.crt', '--key', '/tls/tls.key'] : [];
  const container = {
    name: NAME,
    image: S3_IMAGE,
    args: ['--port', `:${PORT}`, '--health', '/health', ...files, 'posix', '/data'],
    env: [fromRoot('ROOT_ACCESS_KEY', 'access'), fromRoot('ROOT_SECRET_KEY', 'secret')],
    readinessProbe: { httpGet: { path: '/health', port: PORT, scheme: tls ? 'HTTPS' : 'HTTP' }, periodSeconds: 1 },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    volumeMounts: [
      { name: 'data', mountPath: '/data' },
      ...(tls ? [{ name: 'tls', mountPath: '/tls', readOnly: true }] : []),
    ],
  };
  const spec = {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [container],
    volumes: [
      { name: 'data', persistentVolumeClaim: { claimName: NAME } },
      ...(tls ? [{ name: 'tls', secret: { secretName: SERVED } }] : []),
    ],
  };
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: NAME, namespace },
      spec: { selector: labels, ports: [{ port: PORT }] },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: NAME, namespace },
      spec: {
        replicas: 1,
        strategy: { type: 'Recreate' },
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec },
      },
    },
  ];
}
