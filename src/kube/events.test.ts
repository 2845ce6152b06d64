import { expect, test } from 'vitest';
import { ModelApiServer } from '../../test/sim/model/kube.ts';
import { ApiError, noAnswer } from './errors.ts';
import type { EventText } from './event-ledger.ts';
import { EventRecorder } from './events.ts';
import type { Resource } from './object.ts';
import { events } from './resources.ts';

const things: Resource = { group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing' };
const thing = { metadata: { name: 'a', namespace: 'n', uid: 'u' } };
const event: EventText = { type: 'Warning', reason: 'QuorumLost', note: 'one of three responds' };

const slow = noAnswer('POST', 'Timeout', 'too slow');
const busy = new ApiError('POST', 429, { message: 'too many' });
const broken = new ApiError('POST', 503, { message: 'away' });
const refused = new ApiError('POST', 403, { message: 'the namespace is being deleted' });
const notLeading = noAnswer('POST', 'NotLeading', 'another replica leads');

/** A recorder on an API server that fails its first writes with these errors, before it carries them out or `after`. */
function aRecorder(faults: readonly Error[], after = false) {
  const server = new ModelApiServer();
  const errors: unknown[] = [];
  const dropped: string[] = [];
  const slept: number[] = [];
  let asked = 0;
  const create: ModelApiServer['create'] = async (resource, object) => {
    const fault = faults[asked++];
    if (fault && !after) throw fault;
    const made = await server.create(resource, object);
    if (fault) throw fault;
    return made;
  };
  const recorder = new EventRecorder({
    client: new Proxy(server, { get: (to, key) => (key === 'create' ? create : Reflect.get(to, key, to)) }),
    controller: 'c',
    instance: 'i',
    now: () => 1_000,
    sleep: (ms, { aborted }) => {
      slept.push(aborted ? 0 : ms);
      return Promise.resolve();
    },
    onError: (error) => errors.push(error),
    onDrop: (namespace) => dropped.push(namespace),
  });
  /** Once every Event is written or dropped. */
  const recorded = async (): Promise<readonly unknown[]> => {
    await new Promise((resolve) => setImmediate(resolve));
    return server.peek(events).map(({ note }) => note);
  };
  return { recorder, errors, dropped, slept, recorded };
}

test.each([
  ['does not respond', [slow, slow], [500, 2_000]],
  ['is busy', [busy], [500]],
  ['is unavailable', [broken, broken, broken, broken], [500, 2_000, 5_000, 10_000]],
])('an Event is written again when the API server %s', async (_what, faults, pauses) => {
  const { recorder, errors, slept, recorded } = aRecorder(faults);
  recorder.record(things, thing, event);
  expect(await recorded()).toEqual([event.note]);
  expect(slept).toEqual(pauses);
  expect(errors).toEqual([]);
});

test('an Event whose creation was carried out without a response exists once', async () => {
  const { recorder, errors, recorded } = aRecorder([slow], true);
  recorder.record(things, thing, event);
  expect(await recorded()).toEqual([event.note]);
  expect(errors).toEqual([]);
});

test.each([
  ['is refused', [refused]],
  ['comes from a process that no longer leads', [notLeading]],
  ['cannot be written for long', [broken, broken, broken, broken, broken]],
])('an Event that %s is dropped, and the next one is written', async (_what, faults) => {
  const { recorder, errors, recorded } = aRecorder(faults);
  recorder.record(things, thing, event);
  recorder.record(things, thing, { ...event, note: 'two of three respond' });
  expect(await recorded()).toEqual(['two of three respond']);
  expect(errors).toEqual([faults[0]]);
});

test('at shutdown the recorder does not pause between two attempts', async () => {
  const { recorder, slept, recorded } = aRecorder([slow, slow]);
  recorder.record(things, thing, event);
  await recorder.flush();
  expect(await recorded()).toEqual([event.note]);
  expect(slept).toEqual([0, 0]);
});

test('Events of a tenant with thousands of them neither delay nor push out those of another', async () => {
  const { recorder, dropped, recorded } = aRecorder([]);
  const of = (namespace: string, i: number) => ({ metadata: { name: `o-${i}`, namespace, uid: `${namespace}-${i}` } });
  for (let i = 0; i < 2_000; i++) recorder.record(things, of('loud', i), { ...event, note: `loud ${i}` });
  recorder.record(things, of('quiet', 0), { ...event, note: 'quiet' });
  for (let i = 2_000; i < 3_000; i++) recorder.record(things, of('loud', i), { ...event, note: `loud ${i}` });
  await recorder.flush();
  const notes = await recorded();
  expect(notes.indexOf('quiet')).toBeGreaterThanOrEqual(0);
  expect(notes.indexOf('quiet')).toBeLessThan(3);
  expect([notes.length + dropped.length, new Set(dropped)]).toEqual([3_001, new Set(['loud'])]);
});
