/** Carries out the calls of the cluster controller's plans. */
import type { Access } from '../../etcd/client.ts';
import type { ClusterCall, DefragmentCall, EtcdCall } from './calls.ts';
import { executeSecretCall } from './credentials/execute-managed-secrets.ts';
import { executeRootPasswordCall } from './credentials/execute-root-password.ts';
import { executeEtcdCall } from './execute-etcd-call.ts';
import type { ClusterPorts } from './observe.ts';

export async function execute(ports: ClusterPorts, call: ClusterCall, signal: AbortSignal): Promise<void> {
  switch (call.is) {
    case 'etcd':
      return executeEtcdCall(ports.etcd, call, signal, await accessTo(ports, call));
    case 'defragment':
      return ports.defragmentRequests.send(ports.etcd.maintenance, call, await accessTo(ports, call));
    case 'rootPassword':
      return executeRootPasswordCall(ports, call, signal);
    case 'secret':
      return executeSecretCall(ports, call, signal);
  }
}

async function accessTo(
  { clusters, credentials }: ClusterPorts,
  { cluster: key, hosts }: EtcdCall | DefragmentCall,
): Promise<Access> {
  const cluster = clusters.get(key);
  return cluster ? credentials.access(cluster, (endpoint) => hosts[endpoint]) : { cluster: key };
}
