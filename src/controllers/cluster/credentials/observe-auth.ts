/** Whether auth is enabled in etcd, and whether it authenticates the operator as root. */
import type { EtcdCluster } from '../../../api/etcd-cluster.ts';
import { wantsAuth } from '../../../api/tls.ts';
import type { AuthPort } from '../../../etcd/auth.ts';
import type { Access, Ask } from '../../../etcd/client.ts';
import type { EtcdErrorKind } from '../../../etcd/errors.ts';

/** etcd's errors for a client that is not authenticated, or is authenticated by its certificate as the user of that name. */
const AUTH_REQUIRED: readonly EtcdErrorKind[] = ['authRequired', 'permissionDenied', 'userUnknown'];

/**
 * A client with a certificate can list members without a password, so the member list proves nothing. The operator sends a request that
 * needs root first: from 3.7 on, etcd reports the auth status to every client, which would prove no password either.
 */
export async function askAuth(
  etcd: { readonly auth: Pick<AuthPort, 'roles' | 'status'> },
  { spec }: EtcdCluster,
  ask: Ask & { readonly access: Access },
): Promise<{ readonly auth: 'off' | 'on' | 'required' } | undefined> {
  const wanted = wantsAuth(spec);
  if (!wanted && ask.access.tls?.(ask.endpoint).cert === undefined) return undefined; // with auth enabled, the member list would have failed
  const root = await etcd.auth.roles(ask);
  if (!root.ok) return AUTH_REQUIRED.includes(root.error.kind) ? { auth: 'required' } : undefined;
  if (!wanted) return undefined;
  const status = await etcd.auth.status(ask);
  return status.ok ? { auth: status.value.enabled ? 'on' : 'off' } : undefined;
}
