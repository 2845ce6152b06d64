/** A member's own state, and maintenance. */
import {
  AlarmRequest_AlarmAction as AlarmAction,
  type AlarmResponse,
  AlarmType,
  DowngradeRequest_DowngradeAction as DowngradeAction,
  Maintenance,
  type StatusResponse,
} from '../gen/etcd/maintenance_pb.ts';
import { shown } from '../lib/printable.ts';
import type { Ask, Caller } from './call.ts';
import type { Result } from './errors.ts';
import { type SnapshotStream, snapshotStream } from './snapshot.ts';

export interface MemberStatus {
  readonly clusterId: bigint;
  readonly memberId: bigint;
  readonly version: string;
  /** 0 when there is none. */
  readonly leader: bigint;
  readonly isLearner: boolean;
  /** Of all members. */
  readonly alarms: readonly StatedAlarm[];
  readonly revision: bigint;
  readonly raftTerm: bigint;
  readonly raftIndex: bigint;
  readonly raftAppliedIndex: bigint;
  readonly dbSize: number;
  readonly dbSizeInUse: number;
  /** From 3.6 on; absent before. Not to be trusted before 3.6.6. */
  readonly dbSizeQuota?: number;
  /** From 3.6 on, such as `3.6.0`. Reaching the target means that an older binary can be started. */
  readonly storageVersion?: string;
  /** The version that a downgrade has been enabled to; from 3.6 on. */
  readonly downgradeTo?: string;
}

/** As etcd spells it, unknown kinds included: `NOSPACE`, `CORRUPT`. */
export interface StatedAlarm {
  readonly memberId: bigint;
  readonly alarm: string;
}

export type Alarm = 'noSpace' | 'corrupt';

export interface AlarmEntry {
  readonly memberId: bigint;
  readonly alarm: Alarm;
}

export interface KeyspaceHash {
  readonly hash: number;
  readonly compactRevision: bigint;
  /** From 3.6 on. Hashes are comparable only where this and the compact revision agree. */
  readonly hashRevision?: bigint;
  readonly memberId: bigint;
}

export interface MaintenancePort {
  /** The member's own status; served without a quorum too. */
  status(ask: Ask): Promise<Result<MemberStatus>>;
  alarms(ask: Ask): Promise<Result<readonly AlarmEntry[]>>;
  disarm(ask: Ask, entry: AlarmEntry): Promise<Result<readonly AlarmEntry[]>>;
  /** Blocks the member while it runs: set a limit of minutes. */
  defragment(ask: Ask): Promise<Result<void>>;
  /** Of the keys up to a revision; 0: up to now. */
  hashKV(ask: Ask, revision: bigint): Promise<Result<KeyspaceHash>>;
  /** The time limit is for the whole stream; 0: none, because pings detect a dead member. */
  snapshot(ask: Ask, options?: { readonly maxBytes?: number }): SnapshotStream;
  /** Only the leader serves this call. */
  moveLeader(ask: Ask, to: bigint): Promise<Result<void>>;
  /** Returns the version that the cluster has now. */
  downgrade(ask: Ask, action: 'validate' | 'enable' | 'cancel', version?: string): Promise<Result<string>>;
}

export const ALARMS: Readonly<Record<Alarm, AlarmType>> = { noSpace: AlarmType.NOSPACE, corrupt: AlarmType.CORRUPT };
const ACTIONS = {
  validate: DowngradeAction.VALIDATE,
  enable: DowngradeAction.ENABLE,
  cancel: DowngradeAction.CANCEL,
} as const;
const nothing = (): void => undefined;

/** An alarm of an unknown kind is left out: the operator could not act on it. */
export const alarmEntries = ({ alarms }: AlarmResponse): readonly AlarmEntry[] =>
  alarms.flatMap(({ memberID, alarm }) => {
    const known = (Object.keys(ALARMS) as Alarm[]).find((name) => ALARMS[name] === alarm);
    return known ? [{ memberId: memberID, alarm: known }] : [];
  });

/** Two for each of 100 members, which is more than a response may list. */
const MAX_ALARMS = 200;

/** A status lists the alarms of all members among its errors, in the text form of the message. */
export const alarmsIn = (errors: readonly string[]): readonly StatedAlarm[] =>
  errors.slice(0, MAX_ALARMS).flatMap((text) => {
    const found = /memberID:(\d{1,20})\s+alarm:(\w+)/.exec(text);
    return found?.[1] && found[2] ? [{ memberId: BigInt(found[1]), alarm: found[2] }] : [];
  });

/** Longer than any version; a member may send megabytes, and the status of its EtcdMember has it. */
const MAX_VERSION = 64;

function memberStatus(s: StatusResponse): MemberStatus {
  const { clusterId = 0n, memberId = 0n, revision = 0n } = s.header ?? {};
  const { version, leader, isLearner, raftTerm, raftIndex, raftAppliedIndex } = s;
  return {
    clusterId,
    memberId,
    revision,
    version: shown(version, MAX_VERSION),
    leader,
    isLearner,
    alarms: alarmsIn(s.errors),
    raftTerm,
    raftIndex,
    raftAppliedIndex,
    dbSize: Number(s.dbSize),
    dbSizeInUse: Number(s.dbSizeInUse),
    ...(s.dbSizeQuota > 0n && { dbSizeQuota: Number(s.dbSizeQuota) }),
    ...(s.storageVersion !== '' && { storageVersion: shown(s.storageVersion, MAX_VERSION) }),
    ...(s.downgradeInfo?.enabled && { downgradeTo: s.downgradeInfo.targetVersion }),
  };
}

export function maintenancePort(caller: Caller): MaintenancePort {
  const { method } = Maintenance;
  const alarm = (ask: Ask, action: AlarmAction, entry?: AlarmEntry): Promise<Result<readonly AlarmEntry[]>> => {
    const request = { action, ...(entry && { memberID: entry.memberId, alarm: ALARMS[entry.alarm] }) };
    return caller.unary(ask, method.alarm, request, alarmEntries);
  };
  return {
    status: (ask) => caller.unary(ask, method.status, {}, memberStatus),
    alarms: (ask) => alarm(ask, AlarmAction.GET),
    disarm: (ask, entry) => alarm(ask, AlarmAction.DEACTIVATE, entry),
    defragment: (ask) => caller.unary(ask, method.defragment, {}, nothing),
    hashKV: (ask, revision) =>
      caller.unary(ask, method.hashKV, { revision }, ({ header, hash, compactRevision, hashRevision }) => ({
        hash,
        compactRevision,
        ...(hashRevision > 0n && { hashRevision }),
        memberId: header?.memberId ?? 0n,
      })),
    snapshot: (ask, options) => snapshotStream(caller, ask, options),
    moveLeader: (ask, targetID) => caller.unary(ask, method.moveLeader, { targetID }, nothing),
    downgrade: (ask, action, version = '') =>
      caller.unary(ask, method.downgrade, { action: ACTIONS[action], version }, (answer) => answer.version),
  };
}
