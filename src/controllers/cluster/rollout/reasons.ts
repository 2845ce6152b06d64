/** Why a member is outdated and has to restart. A new reason to restart members is a function in CHECKERS. */
import { RESTARTED_AT_ANNOTATION } from '../../../api/names.ts';
import { serviceAccountOf } from '../../../domain/agent-pod.ts';
import { loadsOther, ROTATING } from '../credentials/state.ts';
import { hasJoined, type MemberView, type Observed } from '../observed.ts';
import { votersOf } from '../quorum.ts';
import { isRestartRequested, rolledFields, templateOf } from './state.ts';
import { describedFields } from './template.ts';
import { turnBlockedBy } from './turn.ts';

export interface Outdated {
  /** Reason of the Event. */
  readonly reason: string;
  /** What the restart is for: "to …". */
  readonly message: string;
}

type Checker = (o: Observed, m: MemberView) => Outdated | undefined;

const loadsOtherBundle: Checker = (o, m) =>
  o.credentials.restart.some((bundle) => loadsOther(m.pod, bundle))
    ? { reason: ROTATING, message: 'to load the recorded CA bundle' }
    : undefined;

/** With fewer voters, a restart would interrupt the clients of a cluster that has just been restored. */
const MIN_VOTERS = 3;

/**
 * The seed's Pod has the cloud identity of the store and the volume with the snapshots for as long as it lives: etcd could read all
 * backups, and a ReadWriteOnce volume would keep Jobs on other nodes from starting. Its next Pod has neither.
 */
const hasAccessToStore: Checker = (o, { pod }) => {
  const { source } = o.cluster.spec.bootstrap?.restore ?? {};
  const isHeld = source?.pvc !== undefined || (source && serviceAccountOf(source)) !== undefined;
  return pod.is === 'present' && pod.isForRestore === true && isHeld && votersOf(o).length >= MIN_VOTERS
    ? { reason: 'RestoreFinished', message: 'to drop the access to the store that it was restored from' }
    : undefined;
};

/** Reason of the condition Progressing and of the Event of each restart. */
export const ROLLING_OUT = 'RollingOut';

const hasOtherTemplate: Checker = (o, m) => {
  const fields = rolledFields(o, m);
  if (fields.length === 0) return undefined;
  return { reason: ROLLING_OUT, message: `to apply ${describedFields(fields, templateOf(o, m))}` };
};

const REQUESTED = 'RestartRequested';

const restartRequested: Checker = (o, m) =>
  hasJoined(m) && isRestartRequested(o, m) && !turnBlockedBy(o)
    ? { reason: REQUESTED, message: `because the annotation ${RESTARTED_AT_ANNOTATION} has changed` }
    : undefined;

/** A user has edited the spec, or requested the restart: it brings the edit with it. */
export const isEditReason = ({ reason }: Outdated): boolean => reason === ROLLING_OUT || reason === REQUESTED;

const CHECKERS: readonly Checker[] = [loadsOtherBundle, hasAccessToStore, hasOtherTemplate, restartRequested];

/** All reasons at once: a member that is outdated in two ways restarts once. */
export const outdatedBecause = (o: Observed, m: MemberView): readonly Outdated[] =>
  CHECKERS.flatMap((check) => check(o, m) ?? []);
