import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { HttpClient } from './http-client.ts';
import type { KubeObject } from './object.ts';
import { Transport } from './transport.ts';
import type { StoreEvent } from './watch-protocol.ts';
import { watch } from './watcher.ts';

const object = (name: string, resourceVersion: string, annotations?: object) => ({
  metadata: { name, resourceVersion, annotations },
});
const line = (type: string, body: unknown): string => `${JSON.stringify({ type, object: body })}\n`;
const END = line('BOOKMARK', object('', '10', { 'k8s.io/initial-events-end': 'true' }));

type Answer = (query: URLSearchParams, response: ServerResponse) => void;
let end: (() => void) | undefined;
afterEach(() => end?.());

/** A server that sends these responses, one per request, and then keeps a watch open without events. */
async function against(...answers: readonly Answer[]) {
  const slept: number[] = [];
  const restarts: string[] = [];
  const queries: string[] = [];
  const server = createServer((request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    queries.push(
      ['sendInitialEvents', 'limit', 'resourceVersion']
        .map((k) => query.has(k) && `${k}=${query.get(k)}`)
        .filter(Boolean)
        .join(' '),
    );
    const answer = answers[queries.length - 1];
    if (answer) answer(query, response);
    else response.writeHead(200).flushHeaders();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const identity = { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
  const transport = new Transport(() => Promise.resolve(identity));
  const stop = new AbortController();
  const seen: string[] = [];
  const emit = (e: StoreEvent<KubeObject>): void => {
    seen.push('object' in e ? `${e.type} ${e.object.metadata.name}` : e.type);
  };
  const resource = { group: '', version: 'v1', plural: 'things', kind: 'Thing' };
  const watching = watch({
    client: new HttpClient(transport),
    resource,
    signal: stop.signal,
    emit,
    onError: () => {},
    onRestart: (how) => restarts.push(how),
    sleep: async (ms) => {
      slept.push(ms);
    },
    random: () => 0,
    silenceMs: 1_000,
  });
  end = () => {
    stop.abort();
    server.closeAllConnections();
    server.close();
    void transport.close();
  };
  const until = async (requests: number): Promise<void> => {
    while (queries.length < requests) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  return { queries, seen, until, slept, restarts, watching };
}

const list: Answer = (_q, r) => r.end(line('ADDED', object('a', '5')) + END);

test('a watch that the server ends is resumed at its version, without a second list', async () => {
  const { queries, seen, until } = await against(list, (_q, r) => r.end(line('MODIFIED', object('a', '11'))));
  await until(3);
  expect(queries).toEqual(['sendInitialEvents=true', 'resourceVersion=10', 'resourceVersion=11']);
  expect(seen).toEqual(['restart', 'put a', 'synced', 'put a']);
});

test('a connection that breaks is resumed at its version', async () => {
  const { queries, until } = await against(list, (_q, r) => {
    r.write(line('DELETED', object('a', '12')));
    setTimeout(() => r.destroy(), 30);
  });
  await until(3);
  expect(queries[2]).toBe('resourceVersion=12');
});

test.each<[string, Answer]>([
  ['in the response', (_q, r) => r.writeHead(410).end('{}')],
  ['in the stream', (_q, r) => r.end(line('ERROR', { code: 410 }))],
])('an expired version, reported %s, leads to a new list', async (_how, gone) => {
  const { queries, until } = await against(list, gone);
  await until(3);
  expect(queries[2]).toBe('sendInitialEvents=true');
});

test('a list that breaks is restarted, and is not taken for complete', async () => {
  const { seen, until } = await against((_q, r) => r.end(line('ADDED', object('a', '5'))), list);
  await until(3);
  expect(seen).toEqual(['restart', 'put a', 'restart', 'put a', 'synced']);
});

test('a server that cannot stream lists is read page by page', async () => {
  const page = (name: string, next?: string) =>
    JSON.stringify({ metadata: { resourceVersion: '10', continue: next }, items: [object(name, '5')] });
  const { queries, seen, until } = await against(
    (_q, r) => r.writeHead(422).end('{"reason":"Invalid"}'),
    (_q, r) => r.end(page('a', 'more')),
    (_q, r) => r.end(page('b')),
  );
  await until(4);
  expect(queries).toEqual(['sendInitialEvents=true', 'limit=500', 'limit=500', 'resourceVersion=10']);
  expect(seen.slice(-4)).toEqual(['restart', 'put a', 'put b', 'synced']);
});

test('a peer that died without closing its connection is detected, and the watch is resumed', async () => {
  const silent: Answer = (_q, r) => r.writeHead(200).flushHeaders();
  const { queries, until, restarts } = await against(list, silent, silent);
  await until(4);
  expect(queries.slice(1)).toEqual(['resourceVersion=10', 'resourceVersion=10', 'resourceVersion=10']);
  expect(restarts).toEqual(['resumed', 'resumed', 'resumed']);
});

test('a bookmark proves that the peer is alive', async () => {
  const { queries, until } = await against(list, (_q, r) => {
    let version = 20;
    const beat = setInterval(() => r.write(line('BOOKMARK', object('', String(version++)))), 200);
    setTimeout(() => {
      clearInterval(beat);
      r.end();
    }, 2_200);
  });
  await until(3);
  expect(Number(queries[2]?.split('=')[1])).toBeGreaterThanOrEqual(25);
});

test('an incomplete line at the end of a connection is not taken for an event', async () => {
  const whole = line('MODIFIED', object('a', '11'));
  const { seen, queries, until } = await against(list, (_q, r) =>
    r.end(whole + line('DELETED', object('a', '12')).slice(0, -5)),
  );
  await until(3);
  expect(seen).toEqual(['restart', 'put a', 'synced', 'put a']);
  expect(queries[2]).toBe('resourceVersion=11');
});

test('a Retry-After is obeyed, and each failure in a row waits longer', async () => {
  const { slept, until } = await against(
    list,
    (_q, r) => r.writeHead(429, { 'retry-after': '7' }).end('{}'),
    (_q, r) => r.writeHead(500).end('{}'),
    (_q, r) => r.writeHead(500).end('{}'),
  );
  await until(5);
  expect(slept.slice(0, 3)).toEqual([7_000, 400, 800]);
});

test('an error event in the stream resumes at the same version, too', async () => {
  const { queries, until, restarts } = await against(list, (_q, r) =>
    r.end(line('ERROR', { code: 500, message: 'no' })),
  );
  await until(3);
  expect(queries[2]).toBe('resourceVersion=10');
  expect(restarts).toEqual(['resumed', 'resumed']);
});

const gone: Answer = (_q, r) => r.writeHead(410).end('{}');
const oldList: Answer = (_q, r) =>
  r.end(
    line('ADDED', object('deleted long ago', '5')) +
      line('BOOKMARK', object('', '9', { 'k8s.io/initial-events-end': 'true' })),
  );

test('a list older than what was received is refused, and requested again with pauses', async () => {
  const { seen, slept, queries, until } = await against(list, gone, oldList, oldList, list);
  await until(6);
  expect(seen.filter((what) => what === 'synced').length).toBe(2);
  expect(seen.slice(-3)).toEqual(['restart', 'put a', 'synced']);
  expect(queries.slice(2)).toEqual([...Array(3).fill('sendInitialEvents=true'), 'resourceVersion=10']);
  expect(slept.slice(0, 3)).toEqual([200, 400, 800]);
});

test('a page older than what was received is refused, too', async () => {
  const page = (version: string): Answer => {
    const items = [object('a', '5')];
    return (_q, r) => r.end(JSON.stringify({ metadata: { resourceVersion: version }, items }));
  };
  const cannotStream: Answer = (_q, r) => r.writeHead(422).end('{"reason":"Invalid"}');
  const { seen, until } = await against(cannotStream, page('10'), gone, cannotStream, page('9'), page('11'));
  await until(7);
  expect(seen).toEqual([
    'restart',
    'restart',
    'put a',
    'synced',
    'restart',
    ...Array(2).fill(['restart', 'put a']).flat(),
    'synced',
  ]);
});

test('a server that stays behind, as after a restore, ends the watch: only a restarted process can follow it', async () => {
  const { watching, seen } = await against(list, gone, ...Array<Answer>(16).fill(oldList));
  await expect(watching).rejects.toThrow('things: the API server offers version 9, which is older');
  expect(seen.filter((what) => what === 'synced').length).toBe(1);
});
