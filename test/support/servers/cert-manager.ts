/** The real controllers of cert-manager for a Kubernetes: a local process with the permissions of an administrator. */
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { build } from '../../../local/binaries.ts';
import type { CustomResourceDefinition } from '../../../src/api/crd.ts';
import { root } from '../../../tools/paths.ts';
import { run } from '../../../tools/process.ts';
import type { Tenant } from '../journeys/journey.ts';
import { clientOf, type Source } from '../journeys/tls.ts';
import { removeFolder } from '../kubelet/pod-run.ts';
import { type Child, eventually, Processes } from './processes.ts';

const MODULE = 'github.com/cert-manager/cert-manager';

/** The CRDs of its own API group: those for ACME are not installed, and neither do their controllers run. */
export async function certManagerDefinitions(): Promise<readonly CustomResourceDefinition[]> {
  const cwd = join(root, 'local', 'build', 'cert-manager');
  const { stdout } = await run('go', ['mod', 'download', '-json', MODULE], { cwd });
  const folder = join((JSON.parse(stdout) as { readonly Dir: string }).Dir, 'deploy', 'crds');
  return readdirSync(folder)
    .filter((name) => name.startsWith('cert-manager.io_'))
    .map((name) => parse(readFileSync(join(folder, name), 'utf8')) as CustomResourceDefinition);
}

export interface CertManager {
  readonly log: () => string;
  readonly stop: () => Promise<void>;
}

/** Resolves when it runs; its CRDs must be installed. */
export async function startCertManager(kubeconfig: string): Promise<CertManager> {
  const { 'cert-manager': bin } = await build(['cert-manager']);
  const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-cert-manager-'));
  const processes = new Processes(folder);
  const child: Child = processes.start('cert-manager', join(bin, 'cert-manager'), [`--kubeconfig=${kubeconfig}`]);
  const stop = async (): Promise<void> => {
    await child.stop('SIGKILL');
    removeFolder(folder);
  };
  await eventually('cert-manager to run', () => (child.log().includes('running\n') ? true : undefined), {
    timeoutMs: 60_000,
    seen: () => child.log().slice(-2_000),
  }).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { log: () => child.log(), stop };
}

interface Made {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly [field: string]: unknown;
}

/** A self-signed CA certificate, and an issuer called `name` that signs with it. */
export function caObjects(namespace: string, name: string): readonly Made[] {
  const made = (kind: string, of: string, spec: object): Made => ({
    apiVersion: 'cert-manager.io/v1',
    kind,
    metadata: { name: of, namespace },
    spec,
  });
  return [
    made('Issuer', `${name}-self`, { selfSigned: {} }),
    made('Certificate', `${name}-root`, {
      isCA: true,
      commonName: `${name}-root`,
      secretName: `${name}-root`,
      privateKey: { algorithm: 'ECDSA', size: 256 },
      issuerRef: { name: `${name}-self`, kind: 'Issuer', group: 'cert-manager.io' },
    }),
    made('Issuer', name, { ca: { secretName: `${name}-root` } }),
  ];
}

/** From cert-manager, by an issuer of the tenant's own. */
export function fromCertManager(tenant: Tenant, name: string): Source {
  const issuer = { name: 'ca' };
  return {
    tls: {
      client: { certManager: { serverIssuerRef: issuer, operatorClientIssuerRef: issuer } },
      peer: { certManager: { issuerRef: issuer } },
    },
    oneWay: { certManager: { serverIssuerRef: issuer } },
    give: () => tenant.cluster.apply(caObjects(tenant.namespace, issuer.name)),
    client: () => clientOf(tenant, name),
    renew: async () => {
      for (const certificate of [`${name}-server`, `${name}-peer`]) await renewOne(tenant, certificate);
    },
  };
}

/** As `cmctl renew` does. */
export const REISSUE = {
  type: 'Issuing',
  status: 'True',
  reason: 'ManuallyTriggered',
  message: 'Certificate re-issuance manually triggered',
} as const;

export async function renewOne(tenant: Tenant, certificate: string): Promise<void> {
  const { status } = await tenant.get('certificates.cert-manager.io', certificate);
  const kept = (status?.conditions ?? []).filter(({ type }) => type !== REISSUE.type);
  const conditions = [...kept, { ...REISSUE, lastTransitionTime: new Date().toISOString() }];
  const patch = JSON.stringify({ status: { conditions } });
  const target = ['certificates.cert-manager.io', certificate, '--subresource=status'];
  await tenant.kubectl('patch', ...target, '--type=merge', '-p', patch);
}
