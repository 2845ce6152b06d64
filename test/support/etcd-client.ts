/** The operator's etcd client plus what only users of etcd do: keys, watches, alarms, disabling auth. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { AuthPort } from '../../src/etcd/auth.ts';
import { authPort } from '../../src/etcd/auth.ts';
import type { Ask, Caller } from '../../src/etcd/call.ts';
import { type Etcd, EtcdClient } from '../../src/etcd/client.ts';
import { EtcdFailure, failure, type Result } from '../../src/etcd/errors.ts';
import { type Keys, type KeysPort, type KeyValue, keyRange, keysPort, keyValue } from '../../src/etcd/keys.ts';
import { type KvPort, kvPort } from '../../src/etcd/kv.ts';
import {
  ALARMS,
  type AlarmEntry,
  alarmEntries,
  type MaintenancePort,
  maintenancePort,
} from '../../src/etcd/maintenance.ts';
import { Auth, Permission_Type as PermissionType } from '../../src/gen/etcd/auth_pb.ts';
import { AlarmRequest_AlarmAction as AlarmAction, Maintenance } from '../../src/gen/etcd/maintenance_pb.ts';
import {
  Event_EventType as EventType,
  Watch,
  type WatchRequestSchema,
  type WatchResponse,
} from '../../src/gen/etcd/watch_pb.ts';

export type UserKv = KvPort & KeysPort;

export interface UserMaintenance extends MaintenancePort {
  activate(ask: Ask, entry: AlarmEntry): Promise<Result<readonly AlarmEntry[]>>;
}

export interface UserAuth extends AuthPort {
  disable(ask: Ask): Promise<Result<void>>;
}

/** What the real client and the model have in common. */
export interface UserEtcd extends Etcd {
  readonly kv: UserKv;
  readonly maintenance: UserMaintenance;
  readonly auth: UserAuth;
  put(ask: Ask, key: string, value: string): Promise<Result<bigint>>;
}

/** A role with permissions on some keys. */
interface RoleAuth {
  addRole(ask: Ask, role: string, keys: Keys): Promise<Result<void>>;
}

export class UserClient extends EtcdClient implements UserEtcd {
  override readonly kv: UserKv = userKv(this.caller);
  override readonly maintenance: UserMaintenance = {
    ...maintenancePort(this.caller),
    activate: (ask, { memberId, alarm }) => {
      const request = { action: AlarmAction.ACTIVATE, memberID: memberId, alarm: ALARMS[alarm] };
      return this.caller.unary(ask, Maintenance.method.alarm, request, alarmEntries);
    },
  };
  override readonly auth: UserAuth & RoleAuth = {
    ...authPort(this.caller),
    disable: (ask) => this.caller.unary(ask, Auth.method.authDisable, {}, () => undefined),
    addRole: async (ask, name, keys) => {
      const added = await this.caller.unary(ask, Auth.method.roleAdd, { name }, () => undefined);
      const perm = { permType: PermissionType.READWRITE, ...keyRange(keys) };
      return added.ok
        ? this.caller.unary(ask, Auth.method.roleGrantPermission, { name, perm }, () => undefined)
        : added;
    },
  };

  put(ask: Ask, key: string, value: string): Promise<Result<bigint>> {
    return this.kv.put(ask, key, value);
  }

  async get(ask: Ask, key: string): Promise<Result<string | undefined>> {
    const answer = await this.kv.range(ask, { key });
    if (!answer.ok) return answer;
    const [kv] = answer.value.kvs;
    return { ok: true, value: kv && new TextDecoder().decode(kv.value) };
  }

  /** The timeout is for the creation of the watch; it then lasts until the signal, or until the consumer stops reading. */
  watch(ask: Ask, options: WatchOptions): AsyncGenerator<WatchItem, void, undefined> {
    return items(this.caller, ask, options);
  }
}

const userKv = (caller: Caller): UserKv => ({ ...kvPort(caller), ...keysPort(caller) });

export interface WatchOptions extends Keys {
  /** The first revision to receive; without it, from now on. */
  readonly fromRevision?: bigint;
}

export type WatchItem =
  | { readonly is: 'created' }
  | { readonly is: 'events'; readonly events: readonly WatchEvent[] }
  /** The end: revisions before this one are compacted. List, and watch from there. */
  | { readonly is: 'compacted'; readonly compactRevision: bigint }
  /** The end, for a reason that etcd gives. */
  | { readonly is: 'canceled'; readonly reason: string };

export interface WatchEvent {
  readonly type: 'put' | 'delete';
  readonly kv: KeyValue;
}

async function* items(caller: Caller, ask: Ask, options: WatchOptions): AsyncGenerator<WatchItem, void, undefined> {
  const creating = new AbortController();
  const timer = setTimeout(() => creating.abort(), ask.timeoutMs);
  const over = Promise.withResolvers<void>();
  const signal = AbortSignal.any([creating.signal, ...(ask.signal ? [ask.signal] : [])]);
  try {
    const requests = creation(options, over.promise);
    for await (const answer of caller.stream({ ...ask, timeoutMs: 0, signal }, Watch.method.watch, requests)) {
      clearTimeout(timer);
      const item = itemOf(answer);
      yield item;
      if (item.is === 'compacted' || item.is === 'canceled') return;
    }
    throw failure('disconnected', 'the watch ended without a reason');
  } catch (error) {
    if (creating.signal.aborted) throw failure('timeout', `the watch was not created within ${ask.timeoutMs} ms`);
    throw error instanceof EtcdFailure ? error : new EtcdFailure({ kind: 'other', message: String(error) });
  } finally {
    clearTimeout(timer);
    over.resolve();
  }
}

/** The request side stays open as long as the watch lasts: closing it would end the stream. */
async function* creation(
  options: WatchOptions,
  over: Promise<void>,
): AsyncGenerator<MessageInitShape<typeof WatchRequestSchema>, void, undefined> {
  const value = { ...keyRange(options), startRevision: options.fromRevision ?? 0n };
  yield { requestUnion: { case: 'createRequest', value } };
  await over;
}

function itemOf(answer: WatchResponse): WatchItem {
  if (answer.compactRevision > 0n) return { is: 'compacted', compactRevision: answer.compactRevision };
  if (answer.canceled) return { is: 'canceled', reason: answer.cancelReason };
  if (answer.created) return { is: 'created' };
  const events = answer.events.flatMap(({ type, kv }): readonly WatchEvent[] =>
    kv ? [{ type: type === EventType.DELETE ? 'delete' : 'put', kv: keyValue(kv) }] : [],
  );
  return { is: 'events', events };
}
