/** The audit log of the API server: what the operator and a tenant have asked for, and what was refused. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface AuditEvent {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly apiGroup?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number; readonly message?: string };
}

const LOG = 'audit.log';

/** Bodies are logged, those of Secrets not. */
export function auditFlags(folder: string): readonly string[] {
  const users = ['operator', 'tenant'];
  const policy = {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    rules: [
      { level: 'Metadata', users, resources: [{ group: '', resources: ['secrets'] }] },
      { level: 'Request', users },
      { level: 'None' },
    ],
  };
  const file = join(folder, 'audit-policy.json');
  writeFileSync(file, JSON.stringify(policy));
  return [`--audit-policy-file=${file}`, `--audit-log-path=${join(folder, LOG)}`, '--audit-log-mode=blocking'];
}

export const auditText = (folder: string): string => readFileSync(join(folder, LOG), 'utf8');

export const auditEvents = (text: string, user: string): readonly AuditEvent[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AuditEvent)
    .filter((event) => event.user.username === user);
