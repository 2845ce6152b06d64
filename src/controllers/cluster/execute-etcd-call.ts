/** Sends the changes of a plan to etcd. A refusal is reported to the next reconcile and is not an error of the operator. */
import { CHANGE_TIMEOUT_MS } from '../../domain/timing.ts';
import type { Access, Ask } from '../../etcd/client.ts';
import type { EtcdErrorKind, Result } from '../../etcd/errors.ts';
import { atAny } from '../../etcd/failover.ts';
import { idOf } from '../../etcd/ids.ts';
import type { KvPort } from '../../etcd/kv.ts';
import type { MaintenancePort } from '../../etcd/maintenance.ts';
import type { MembersPort } from '../../etcd/members.ts';
import { RetryLater } from '../../runtime/plan.ts';
import { type EtcdCall, type EtcdChange, UNHEALTHY_CLUSTER } from './calls.ts';

export interface ChangePorts {
  readonly members: Pick<MembersPort, 'add' | 'promote' | 'remove'>;
  readonly maintenance: Pick<MaintenancePort, 'moveLeader' | 'disarm' | 'downgrade'>;
  readonly kv: Pick<KvPort, 'compact'>;
}

/** etcd errors that mean that the change was made already: by another client, or by a request whose response got lost. */
const ALREADY_DONE: Readonly<Record<EtcdChange['name'], readonly EtcdErrorKind[]>> = {
  addLearner: ['peerURLExists', 'alreadyExists'], // the id is derived from the second, so a retry within it gets the same id
  promote: ['notLearner'],
  remove: ['notFound'],
  moveLeader: [],
  compact: ['compacted'],
  disarm: [],
  enableDowngrade: ['downgradeInProgress'],
  cancelDowngrade: ['noDowngrade'],
};

export async function executeEtcdCall(
  etcd: ChangePorts,
  call: EtcdCall,
  signal: AbortSignal,
  way: Access = { cluster: call.cluster },
): Promise<void> {
  const access = { ...way, clusterId: idOf(call.clusterID) };
  const failures: EtcdErrorKind[] = [];
  const answer = await atAny<unknown>(
    call.endpoints,
    { timeoutMs: CHANGE_TIMEOUT_MS, signal, access },
    { repeatable: false },
    async (ask) => {
      const one = await once(etcd, call, ask);
      if (!one.ok) failures.push(one.error.kind);
      return one;
    },
  );
  if (answer.ok || ALREADY_DONE[call.name].includes(answer.error.kind)) return;
  // A voter that did not respond might have accepted the change, so this counts only if every voter refused it.
  const byAll = failures.length > 0 && failures.every((kind) => kind === UNHEALTHY_CLUSTER);
  throw new RetryLater(
    `etcd refuses: ${answer.error.message}`,
    byAll ? `${UNHEALTHY_CLUSTER}: ${call.name} ${call.target}` : undefined,
  );
}

function once(etcd: ChangePorts, call: EtcdCall, ask: Ask): Promise<Result<unknown>> {
  switch (call.name) {
    case 'addLearner':
      return etcd.members.add(ask, [call.peerURL], { learner: true });
    case 'promote':
      return etcd.members.promote(ask, idOf(call.id));
    case 'remove':
      return etcd.members.remove(ask, idOf(call.id));
    case 'moveLeader':
      return etcd.maintenance.moveLeader(ask, idOf(call.to));
    case 'compact':
      return etcd.kv.compact(ask, BigInt(call.revision));
    case 'enableDowngrade':
      return etcd.maintenance.downgrade(ask, 'enable', call.version);
    case 'cancelDowngrade':
      return etcd.maintenance.downgrade(ask, 'cancel');
    case 'disarm':
      return etcd.maintenance.disarm(ask, { memberId: idOf(call.id), alarm: call.alarm });
  }
}
