/** Whether etcd wants a log-in, and lets the operator in as root. */
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import { wantsAuth } from '../../../api/tls.ts';
import type { AuthPort } from '../../../etcd/auth.ts';
import type { Access, Ask } from '../../../etcd/client.ts';
import type { EtcdErrorKind } from '../../../etcd/errors.ts';

export type AskedAuth = Pick<AuthPort, 'roles' | 'status'>;

/** What it says to whoever has not logged in; with a certificate, to the user of that name. */
const AUTH_REQUIRED: readonly EtcdErrorKind[] = ['authRequired', 'permissionDenied', 'userUnknown'];

/**
 * Who shows a certificate sees members without a log-in, so that not even an answer tells. What only root may ask is asked
 * first: from 3.7 on, whether log-ins are on is told to everybody, and would prove no password.
 */
export async function askAuth(
  etcd: { readonly auth: AskedAuth },
  { spec }: EtcdCluster,
  ask: Ask & { readonly access: Access },
): Promise<{ readonly auth: 'off' | 'on' | 'demanded' } | undefined> {
  const wanted = wantsAuth(spec);
  if (!wanted && ask.access.tls?.(ask.endpoint).cert === undefined) return undefined; // the list would not have come
  const root = await etcd.auth.roles(ask);
  if (!root.ok) return AUTH_REQUIRED.includes(root.error.kind) ? { auth: 'demanded' } : undefined;
  if (!wanted) return undefined;
  const status = await etcd.auth.status(ask);
  return status.ok ? { auth: status.value.enabled ? 'on' : 'off' } : undefined;
}
