/**
 * The requests for defragmentations that this process has sent. etcd takes minutes, and a reconcile must not: the request stays
 * open, and later reconciles are given its response. Only etcd knows whether a defragmentation that freed nothing has succeeded.
 */
import type { Access, Ask } from '../../etcd/client.ts';
import type { Result } from '../../etcd/errors.ts';
import { idOf } from '../../etcd/ids.ts';
import type { MaintenancePort } from '../../etcd/maintenance.ts';
import type { DefragmentCall } from './calls.ts';
import type { DefragResponse } from './observed.ts';

interface Sent {
  readonly request: string;
  response: DefragResponse;
}

export class DefragmentRequests {
  /** By cluster: one member is defragmented at a time. */
  readonly #sent = new Map<string, Sent>();

  /** Does not wait for the response. Without the signal of a reconcile: etcd would go on, and its response would be lost. */
  send(etcd: Pick<MaintenancePort, 'defragment'>, call: DefragmentCall, way: Access = { cluster: call.cluster }): void {
    const { cluster, clusterID, endpoint, request, timeoutMs } = call;
    const ask: Ask = { endpoint, timeoutMs, access: { ...way, clusterId: idOf(clusterID) } };
    const sent: Sent = { request, response: { is: 'awaited' } };
    this.#sent.set(cluster, sent);
    etcd.defragment(ask).then(
      (answer) => {
        sent.response = responseOf(answer);
      },
      (error: unknown) => {
        sent.response = { is: 'failed', message: String(error) };
      },
    );
  }

  /** `undefined`: this process has not sent it. */
  responseTo(cluster: string, request: string): DefragResponse | undefined {
    const sent = this.#sent.get(cluster);
    return sent?.request === request ? sent.response : undefined;
  }

  forget(cluster: string): void {
    this.#sent.delete(cluster);
  }
}

const responseOf = (answer: Result<void>): DefragResponse =>
  answer.ok ? { is: 'succeeded' } : { is: 'failed', message: answer.error.message };
