/** How an operator process reaches the API server and etcd: over networks with delays and troubles, and only with its Lease. */
import type { Process } from '../../../src/bin/stores.ts';
import type { Ask, Etcd } from '../../../src/etcd/client.ts';
import type { EtcdError, Result } from '../../../src/etcd/errors.ts';
import type { Client, WatchCall } from '../../../src/kube/client.ts';
import { ApiError, noAnswer } from '../../../src/kube/errors.ts';
import type { KubeObject, Ref, Resource } from '../../../src/kube/object.ts';
import type { WireEvent } from '../../../src/kube/watch-protocol.ts';
import type { ModelEtcd } from '../model/etcd.ts';
import { isGranted } from '../permission-invariants.ts';
import type { Ground } from './ground.ts';
import type { LeaseModel } from './lease.ts';
import type { ApiTrouble, EtcdTrouble, Network } from './network.ts';
import type { OperatorProcess } from './operator.ts';
import { WatchStream } from './watch-stream.ts';

export interface Write {
  readonly by: OperatorProcess;
  readonly verb: 'create' | 'apply' | 'patch' | 'status' | 'delete' | 'evict' | 'scale';
  readonly resource: Resource;
  readonly ref: Ref;
  readonly body?: unknown;
}

export interface MembershipCall {
  readonly by: OperatorProcess;
  readonly method: string;
  readonly args: readonly unknown[];
  readonly ask: Ask;
}

/** Observes everything that operators do. */
export interface Onlooker {
  /** Called before a write is carried out, and after it. */
  before(write: Write): void;
  after(write: Write, result: KubeObject | undefined): void;
  /** Every request to etcd, as it is sent. */
  asks(call: MembershipCall): void;
  changes(call: MembershipCall): void;
  changed(call: MembershipCall, answer: Result<unknown>): void;
  /** The operator has received the response. */
  answered(call: MembershipCall): void;
}

export interface WatchTroubles {
  /** Until when events of a kind are held back. */
  readonly heldUntil: Map<string, number>;
  mergeUntil: number;
  readonly open: Set<WatchStream<KubeObject>>;
  /** Until when Secrets cannot be read: the API server cannot decrypt them. */
  unreadableUntil: number;
}

/** The operator's own timeout of a request. */
const API_PATIENCE_MS = 10_000;

const SPOILED: Readonly<Record<ApiTrouble, (name: string) => Error>> = {
  conflict: (name) => new ApiError(name, 409, { reason: 'Conflict', message: 'the object has been modified' }),
  tooManyRequests: (name) =>
    new ApiError(name, 429, { reason: 'TooManyRequests', message: 'please try again later' }, { retryAfterMs: 1_000 }),
  serverError: (name) => new ApiError(name, 500, { reason: 'InternalError', message: 'etcdserver: leader changed' }),
  lostRequest: (name) => noAnswer(name, 'Timeout', 'no answer'),
  lostAnswer: (name) => noAnswer(name, 'Timeout', 'no answer'),
  slow: (name) => noAnswer(name, 'Timeout', 'no answer'),
};

const forbidden = (verb: string, { plural }: Resource): ApiError =>
  new ApiError(verb, 403, { reason: 'Forbidden', message: `cannot ${verb} ${plural}: no role grants it` });

export interface ApiSurroundings {
  readonly ground: Ground;
  readonly lease: LeaseModel;
  readonly network: Network<ApiTrouble>;
  readonly watches: WatchTroubles;
  readonly onlooker: Onlooker;
}

/** Without what no role grants; writes are checked by an invariant. */
export function apiFor(self: OperatorProcess, around: ApiSurroundings): Client {
  const client = unlimitedApiFor(self, around);
  return {
    ...client,
    get: (resource, ref, signal) =>
      isGranted('get', resource) ? client.get(resource, ref, signal) : Promise.reject(forbidden('get', resource)),
    pages: (resource, selection) => {
      if (!isGranted('list', resource)) throw forbidden('list', resource);
      return client.pages(resource, selection);
    },
  };
}

function unlimitedApiFor(self: OperatorProcess, around: ApiSurroundings): Client {
  const { ground, lease, network, onlooker } = around;
  const { api } = ground;
  const exchange = <T>(name: string, signal: AbortSignal | undefined, carryOut: () => Promise<T>): Promise<T> =>
    network.exchange<T>({
      asker: self,
      signal,
      carryOut,
      spoiled: (kind) => SPOILED[kind](name),
      aborted: () => noAnswer(name, 'Aborted', 'aborted'),
      patienceMs: API_PATIENCE_MS,
    });
  const write = <T extends KubeObject | undefined | void>(
    what: Omit<Write, 'by'>,
    signal: AbortSignal | undefined,
    carryOut: () => Promise<T>,
  ): Promise<T> => {
    const { verb, resource, ref } = what;
    const name = `${verb} ${resource.plural}/${ref.name}`;
    if (self.dead) return new Promise(() => {});
    if (!lease.mayWrite(self)) return Promise.reject(noAnswer(name, 'NotLeading', 'the lease is not held'));
    const whole: Write = { ...what, by: self };
    return exchange(name, signal, async () => {
      onlooker.before(whole);
      const result = await carryOut();
      ground.tell(() => `${self.name} → ${name}`);
      onlooker.after(whole, result as KubeObject | undefined);
      return result;
    });
  };
  return {
    get: (resource, ref, signal) =>
      exchange(`get ${ref.name}`, signal, () => {
        const isUnreadable = resource.kind === 'Secret' && around.watches.unreadableUntil > ground.timeline.now;
        if (isUnreadable) ground.count('api: unreadable Secret');
        return isUnreadable ? Promise.reject(SPOILED.serverError(`get ${ref.name}`)) : api.get(resource, ref);
      }),
    pages: (resource, selection) => api.pages(resource, selection),
    create: (resource, object, signal) => {
      const { namespace = '', name = '' } = object.metadata;
      return write({ verb: 'create', resource, ref: { namespace, name }, body: object }, signal, () =>
        api.create(resource, object),
      );
    },
    dryRunCreate: (resource, object, signal) =>
      exchange(`dry run of ${resource.plural}`, signal, () => api.dryRunCreate(resource, object)),
    apply: (resource, ref, uid, fields, signal) =>
      write({ verb: 'apply', resource, ref, body: fields }, signal, () => api.apply(resource, ref, uid, fields)),
    patch: (resource, ref, body, options = {}) =>
      write({ verb: options.subresource ?? 'patch', resource, ref, body }, options.signal, () =>
        api.patch(resource, ref, body, options.subresource ? { subresource: options.subresource } : {}),
      ),
    delete: (resource, ref, preconditions, signal) =>
      write({ verb: 'delete', resource, ref }, signal, () => api.delete(resource, ref, preconditions)),
    watch: (resource, call) => watchFor(self, around, resource, call),
  };
}

function watchFor<T extends KubeObject>(
  self: OperatorProcess,
  { ground, watches }: ApiSurroundings,
  resource: Resource<T>,
  call: WatchCall,
): AsyncIterable<WireEvent<T>> {
  const { timeline, random } = ground;
  const arrive = (): void => {
    const held = (watches.heldUntil.get(resource.plural) ?? 0) - timeline.now;
    if (held > 0) return schedule(held);
    const merge = watches.mergeUntil > timeline.now;
    if (stream.deliver(merge ? 100 : random.between(1, 3), merge)) schedule(random.between(1, 20));
  };
  const schedule = (ms = random.between(1, 30)): void => {
    timeline.after(ms, arrive, self);
  };
  const connection = new AbortController();
  const close = (): void => connection.abort();
  call.signal.addEventListener('abort', close, { once: true });
  const stream = new WatchStream<T>(
    ground.api.watch(resource, { ...call, signal: connection.signal }),
    () => schedule(),
    {
      merged: () => ground.count('watch: merged'),
      over: () => {
        watches.open.delete(stream);
        call.signal.removeEventListener('abort', close);
        close();
      },
    },
  );
  watches.open.add(stream);
  return stream;
}

const MEMBERSHIP = ['add', 'promote', 'remove', 'update', 'moveLeader', 'defragment', 'compact', 'disarm'];

export interface EtcdSurroundings {
  readonly etcd: ModelEtcd;
  readonly network: Network<EtcdTrouble>;
  readonly onlooker: Onlooker;
  readonly ground: Ground;
}

/** Requests to a member that is being defragmented: the defragmentation is answered at its end, and so is what waits for it. */
async function duringDefragmentation(
  etcd: ModelEtcd,
  ask: Ask,
  method: string,
  call: () => Promise<Result<unknown>>,
  passing: (ms: number) => Promise<void>,
): Promise<Result<unknown>> {
  const answer = await call();
  const node = etcd.nodes.find(({ endpoint, running }) => running && endpoint === ask.endpoint);
  const leftMs = node ? node.defragmentsUntil - etcd.now : 0;
  if (!node || leftMs <= 0 || leftMs > ask.timeoutMs) return answer;
  const { startedAt } = node;
  if (method === 'defragment' && answer.ok) {
    await passing(leftMs);
    const goesOn = node.running && !node.isolated && node.startedAt === startedAt;
    return goesOn ? answer : failed('disconnected', 'the connection broke');
  }
  if (answer.ok || answer.error.kind !== 'timeout' || node.isolated) return answer;
  await passing(leftMs);
  return call();
}

/** The ports of the model, with every call going through the network. */
export function etcdFor(
  self: OperatorProcess,
  ports: Readonly<Record<string, object>>,
  around: EtcdSurroundings,
): Etcd {
  const { network, onlooker, ground, etcd } = around;
  const passing = (ms: number): Promise<void> => new Promise((resolve) => ground.timeline.after(ms, resolve));
  type Method = (ask: Ask, ...args: readonly unknown[]) => Promise<Result<unknown>>;
  const over = (method: string, call: Method): Method => {
    const changing = MEMBERSHIP.includes(method);
    return (ask, ...args) => {
      const change: MembershipCall = { by: self, method, args, ask };
      if (!self.dead) onlooker.asks(change);
      if (changing && !self.dead) onlooker.changes(change);
      const answered = network.exchange<Result<unknown>>({
        asker: self,
        signal: ask.signal,
        carryOut: async () => {
          const answer = await duringDefragmentation(etcd, ask, method, () => call(ask, ...args), passing);
          if (changing) {
            ground.tell(() => `${self.name} → etcd ${method} ${args.map(shown).join(' ')}: ${outcome(answer)}`);
            onlooker.changed(change, answer);
          }
          // A member that is cut off, or has no leader, does not respond until the timeout.
          if (!answer.ok && answer.error.kind === 'timeout')
            await new Promise<void>((resolve) => ground.timeline.after(ask.timeoutMs, resolve, self));
          return answer;
        },
        spoiled: (kind) => failed(kind === 'disconnected' ? 'disconnected' : 'timeout', 'no answer'),
        aborted: () => failed('canceled', 'the caller gave up'),
        patienceMs: ask.timeoutMs,
      });
      return changing ? answered.finally(() => onlooker.answered(change)) : answered;
    };
  };
  const wrapped = Object.fromEntries(
    Object.entries(ports).map(([subject, methods]) => [
      subject,
      Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, over(name, method as Method)])),
    ]),
  ) as unknown as Etcd;
  const nothing = (): void => undefined;
  return {
    ...wrapped,
    status: (ask) => wrapped.maintenance.status(ask),
    memberList: (ask) => wrapped.members.list(ask, ask),
    retain: nothing,
    reset: nothing,
    forget: nothing,
  };
}

const LISTEN_MS = 2_000;

/** Reads the certificate that a member serves. */
export const handshakeFor =
  (self: OperatorProcess, etcd: ModelEtcd, network: Network<EtcdTrouble>): Process['handshake'] =>
  (endpoint, tls) =>
    network.exchange<string | undefined>({
      asker: self,
      signal: undefined,
      carryOut: () => Promise.resolve(etcd.served(endpoint, tls)),
      spoiled: () => undefined,
      aborted: () => undefined,
      patienceMs: LISTEN_MS,
    });

const failed = (kind: EtcdError['kind'], message: string): Result<never> => ({ ok: false, error: { kind, message } });
const shown = (value: unknown): string =>
  typeof value === 'bigint' ? value.toString(16) : Array.isArray(value) ? value.join() : '';
const outcome = (answer: Result<unknown>): string => (answer.ok ? 'done' : answer.error.message);
