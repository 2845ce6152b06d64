import { expect, test } from 'vitest';
import { ModelApiServer } from '../../test/sim/model/kube.ts';
import { ApiError } from '../kube/errors.ts';
import { nodes, pods } from '../kube/resources.ts';
import { type AnyStore, Store } from '../kube/store.ts';
import { systemClock } from './clock.ts';
import { ApiServerHeartbeat } from './heartbeat.ts';
import { createLogger } from './log.ts';
import { missingKinds, parseAddress, portOf, serve, startCache, whenSynced } from './manager.ts';
import { createMetrics } from './metrics.ts';

test('S8: the operator starts without a kind that it may not read, and waits for one that it needs', async () => {
  const stop = new AbortController();
  const client = new ModelApiServer();
  client.watch = () => {
    throw new ApiError('WATCH', 403, { reason: 'Forbidden', message: 'cannot watch' });
  };
  const options = {
    client,
    clock: systemClock,
    log: createLogger('silent'),
    signal: stop.signal,
    metrics: createMetrics(),
    heartbeat: new ApiServerHeartbeat(systemClock),
    onDead: () => {},
  };
  const [optional, needed]: readonly AnyStore[] = [new Store(nodes, []), new Store(pods, [])];
  if (!optional || !needed) throw new Error('there are two');
  startCache(optional as Store<never>, { ...options, whenMissing: 'no nodes', mayBeForbidden: true });
  startCache(needed as Store<never>, options);
  const caches = { optional: [{ store: optional, whenMissing: 'no nodes' }] };
  await whenSynced({ ...caches, stores: [optional] }, systemClock, stop.signal);
  expect(missingKinds({ ...caches, stores: [optional, needed] })).toEqual({ needed: [], notes: ['no nodes'] });
  const waiting = whenSynced({ ...caches, stores: [optional, needed] }, systemClock, stop.signal);
  setTimeout(() => stop.abort(), 50);
  await expect(waiting).rejects.toThrow();
});

test.each([
  [':8080', { port: 8080 }],
  ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
  ['[::1]:8080', { host: '::1', port: 8080 }],
  ['0', undefined],
  ['', undefined],
])('the address %j is parsed as Go programs do', (text, address) => {
  expect(parseAddress(text)).toEqual(address);
});

test.each(['8080', ':http', ':70000', 'localhost'])('the address %j is an error', (text) => {
  expect(() => parseAddress(text)).toThrow('is not an address');
});

test('pages are served, an unknown one is a 404, and one that fails is a 500 and not a crash', async () => {
  const server = await serve('127.0.0.1:0', {
    '/healthz': () => ({ code: 200, text: 'ok\n' }),
    '/broken': () => Promise.reject(new Error('no')),
  });
  if (!server) throw new Error('not listening');
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${portOf(server)}${path}`)).status;
  expect(await Promise.all([get('/healthz?verbose'), get('/nothing'), get('/broken')])).toEqual([200, 404, 500]);
  server.closeAllConnections();
  server.close();
});
