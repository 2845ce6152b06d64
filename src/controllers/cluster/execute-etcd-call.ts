/** Carries out the changes of a plan at etcd. What etcd refuses is a fact for the next pass, not a fault. */
import type { Access, Ask } from '../../etcd/client.ts';
import type { EtcdErrorKind, Result } from '../../etcd/errors.ts';
import { atAny } from '../../etcd/failover.ts';
import { idOf } from '../../etcd/ids.ts';
import type { MaintenancePort } from '../../etcd/maintenance.ts';
import type { MembersPort } from '../../etcd/members.ts';
import { RetryLater } from '../../runtime/plan.ts';
import { type EtcdCall, type EtcdChange, UNHEALTHY_CLUSTER } from './calls.ts';

export interface ChangePorts {
  readonly members: Pick<MembersPort, 'add' | 'promote' | 'remove'>;
  readonly maintenance: Pick<MaintenancePort, 'moveLeader' | 'disarm'>;
}

const CHANGE_TIMEOUT_MS = 5_000;
/** It is as it should be already: somebody was faster, or an answer of ours got lost. */
const ALREADY_DONE: Readonly<Record<EtcdChange['name'], readonly EtcdErrorKind[]>> = {
  addLearner: ['peerURLExists', 'alreadyExists'], // within the same second it would get the same id
  promote: ['notLearner'],
  remove: ['notFound'],
  moveLeader: [],
  disarmCorrupt: [],
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
  // A voter that did not answer might have accepted it: then nothing is known about the views of all.
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
    case 'disarmCorrupt':
      return etcd.maintenance.disarm(ask, { memberId: idOf(call.id), alarm: 'corrupt' });
  }
}
