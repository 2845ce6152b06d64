/** Changes of the model's keys as they happen. */
import type { Ask } from '../../../src/etcd/client.ts';
import { EtcdFailure, failure } from '../../../src/etcd/errors.ts';
import type { WatchEvent, WatchItem, WatchOptions, WatchPort } from '../../../src/etcd/watch.ts';
import type { Call, Gate } from './etcd-gate.ts';
import { type Change, within } from './etcd-keys.ts';
import { type ModelNode, stateOf } from './etcd-node.ts';

const PROGRESS_MS = 600_000;
const DENIED: WatchItem = { is: 'canceled', reason: 'etcdserver: permission denied' };

export const changesPort = (gate: Gate): WatchPort => ({ watch: (ask, options) => items(gate, ask, options) });

async function* items(gate: Gate, ask: Ask, options: WatchOptions): AsyncGenerator<WatchItem, void, undefined> {
  const { model } = gate;
  const begun = await gate.ask(ask, { who: 'anyone' }, (call) => call);
  if (!begun.ok) throw new EtcdFailure(begun.error);
  const { node, state } = begun.value;
  if (isForbidden(begun.value, options)) return yield DENIED;
  const { startedAt } = node;
  const matches = within(options);
  let next = options.fromRevision ?? state.keys.revision + 1n;
  let toldAt = model.now;
  yield { is: 'created', revision: state.keys.revision };
  for (;;) {
    if (ask.signal?.aborted) throw failure('canceled', 'the caller gave up');
    if (!node.running || node.startedAt !== startedAt || !node.disk) throw failure('disconnected', 'the member ended');
    const { keys } = stateOf(node.disk);
    if (next < keys.compacted) return yield { is: 'compacted', compactRevision: keys.compacted };
    const since = keys.changes.filter(({ kv }) => kv.modRevision >= next);
    next = keys.revision + 1n > next ? keys.revision + 1n : next;
    const events = since.filter(({ kv }) => matches(Buffer.from(kv.key).toString('latin1')));
    if (events.length > 0) yield { is: 'events', revision: keys.revision, events: events.map((c) => told(c, options)) };
    else if (options.progress && model.now - toldAt >= progressMs(node))
      yield { is: 'progress', revision: keys.revision };
    else {
      await model.change(ask.signal);
      continue;
    }
    toldAt = model.now;
  }
}

const progressMs = ({ options }: ModelNode): number => options.progressMs ?? PROGRESS_MS;

const isForbidden = ({ state: { users }, user }: Call, keys: WatchOptions): boolean =>
  users.enabled && (user === undefined || !users.may(user, 'read', keys));

const told = ({ type, kv, previous }: Change, options: WatchOptions): WatchEvent => ({
  type,
  kv,
  ...(options.previous && previous && { previous }),
});
