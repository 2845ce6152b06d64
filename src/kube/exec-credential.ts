/** Credentials from an exec plugin that the kubeconfig names: how cloud providers issue tokens. */
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import type { Identity } from './identity.ts';

export interface ExecEntry {
  readonly apiVersion?: string;
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
}

interface ExecCredential {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly status?: {
    readonly token?: string;
    readonly clientCertificateData?: string;
    readonly clientKeyData?: string;
    readonly expirationTimestamp?: string;
  };
}

export interface ExecContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Relative commands with a slash are resolved against this folder. */
  readonly folder: string;
  readonly cluster: Pick<Identity, 'server' | 'ca' | 'serverName'>;
}

const VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];
const TIMEOUT_MS = 60_000;

/**
 * Runs the plugin and parses its output. The credential is used until its expirationTimestamp, or until the API server
 * refuses it.
 */
export async function execIdentity(entry: ExecEntry, context: ExecContext): Promise<Partial<Identity>> {
  const apiVersion = entry.apiVersion ?? VERSIONS[0] ?? '';
  if (!VERSIONS.includes(apiVersion))
    throw new Error(`the credential plugin ${entry.command} wants ${apiVersion}; known are ${VERSIONS.join(' and ')}`);
  const printed = await run(entry, context, execInfo(entry, context, apiVersion));
  const { status } = read(printed, entry.command, apiVersion);
  if (!status?.token && !(status?.clientCertificateData && status.clientKeyData))
    throw new Error(`the credential plugin ${entry.command} gave neither a token nor a certificate with its key`);
  const ends = Date.parse(status.expirationTimestamp ?? '');
  return {
    goodUntil: Number.isNaN(ends) ? Number.POSITIVE_INFINITY : ends,
    ...(status.token && { token: status.token }),
    ...(status.clientCertificateData && { cert: status.clientCertificateData }),
    ...(status.clientKeyData && { key: status.clientKeyData }),
  };
}

function execInfo(entry: ExecEntry, { cluster }: ExecContext, apiVersion: string): string {
  const { server, ca, serverName } = cluster;
  const about = {
    server,
    ...(ca && { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
    ...(serverName && { 'tls-server-name': serverName }),
  };
  const spec = { interactive: false, ...(entry.provideClusterInfo && { cluster: about }) };
  return JSON.stringify({ apiVersion, kind: 'ExecCredential', spec });
}

function run(entry: ExecEntry, { env, folder }: ExecContext, info: string): Promise<string> {
  const command = entry.command.includes('/') ? resolve(folder, entry.command) : entry.command;
  const own = Object.fromEntries((entry.env ?? []).map(({ name, value }) => [name, value]));
  const options = { env: { ...env, ...own, KUBERNETES_EXEC_INFO: info }, timeout: TIMEOUT_MS };
  return new Promise((done, fail) => {
    execFile(command, entry.args ?? [], options, (error, stdout, stderr) => {
      if (!error) return done(stdout);
      const hint = error.code === 'ENOENT' && entry.installHint ? `; ${entry.installHint}` : '';
      const output = stderr.trim() === '' ? error.message : stderr.trim().slice(-500);
      fail(new Error(`the credential plugin ${entry.command} failed: ${output}${hint}`, { cause: error }));
    });
  });
}

function read(printed: string, command: string, apiVersion: string): ExecCredential {
  let answer: ExecCredential;
  try {
    answer = JSON.parse(printed) as ExecCredential;
  } catch (error) {
    throw new Error(`the credential plugin ${command} did not print JSON`, { cause: error });
  }
  if (answer.kind !== 'ExecCredential' || answer.apiVersion !== apiVersion)
    throw new Error(
      `the credential plugin ${command} printed ${answer.kind} of ${answer.apiVersion}, not ${apiVersion}`,
    );
  return answer;
}
