/** Watches of an API server, on a real one and on the model that simulations use. */
import { describe, expect, test } from 'vitest';
import type { StoreEvent, WireEvent } from '../../src/kube/watch-protocol.ts';
import { watch } from '../../src/kube/watcher.ts';
import { eventually } from '../support/servers/processes.ts';
import { type ConfigMap, configMaps, kitIn, uidOf, versionOf } from './kube-kit.ts';
import { modelWorld, realWorld } from './kube-world.ts';

const MINUTE_MS = 60_000;

describe.each([
  ['the model', modelWorld],
  ['a real API server', realWorld],
])('%s', (server, start) => {
  const kit = kitIn(start);
  const { aName, aConfigMap, ref } = kit;

  describe('a watch', () => {
    /** The first events of one connection, as text. */
    async function eventsOf(
      query: Record<string, string>,
      number: number,
      act: (seen: readonly string[]) => Promise<unknown> = async () => undefined,
      patienceMs = MINUTE_MS / 2,
    ) {
      const stop = new AbortController();
      const seen: string[] = [];
      const read = async (): Promise<void> => {
        const call = {
          namespace: kit.namespace,
          query: { watch: 'true', allowWatchBookmarks: 'true', ...query },
          signal: stop.signal,
        };
        for await (const event of kit.client.watch(configMaps, call)) {
          const text = words(event);
          if (text === 'BOOKMARK ' && number > 1) continue; // the server sends a bookmark whenever it likes
          seen.push(text);
          if (seen.length >= number) return;
        }
        seen.push('end');
      };
      const reading = read();
      reading.catch(() => undefined); // it is awaited below, also when it fails meanwhile
      await act(seen);
      await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, patienceMs))]);
      stop.abort();
      await reading.catch(() => undefined);
      return seen;
    }
    const words = (event: WireEvent<ConfigMap>): string =>
      event.type === 'ERROR'
        ? `ERROR ${event.object.code}`
        : event.type === 'BOOKMARK'
          ? `BOOKMARK ${event.object.metadata.annotations?.['k8s.io/initial-events-end'] ?? ''}`
          : `${event.type} ${event.object.metadata.name} ${JSON.stringify(event.object.data)}`;
    const streaming = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' };

    test('with initial events sends the existing objects, then their end, then every change in order', async () => {
      const name = aName();
      await aConfigMap(name, { labels: { watched: name } });
      const seen = await eventsOf({ ...streaming, labelSelector: `watched=${name}` }, 5, async (received) => {
        await eventually('the end of the initial events', () => received.includes('BOOKMARK true') || undefined);
        await kit.client.patch(configMaps, ref(name), { data: { a: '2' } });
        const now = await kit.client.patch(configMaps, ref(name), { data: { a: '3' } });
        await kit.client.delete(configMaps, ref(name), { uid: uidOf(now) });
      });
      expect(seen).toEqual([
        `ADDED ${name} {"a":"1"}`,
        'BOOKMARK true',
        `MODIFIED ${name} {"a":"2"}`,
        `MODIFIED ${name} {"a":"3"}`,
        `DELETED ${name} {"a":"3"}`,
      ]);
    });

    test('from a resourceVersion sends everything since, also changes before it was opened', async () => {
      const name = aName();
      const made = await aConfigMap(name, { labels: { watched: name } });
      await kit.client.patch(configMaps, ref(name), { data: { a: '2' } });
      const seen = await eventsOf({ resourceVersion: versionOf(made), labelSelector: `watched=${name}` }, 1);
      expect(seen).toEqual([`MODIFIED ${name} {"a":"2"}`]);
    });

    test('an object that starts to match is ADDED, and one that stops to match is DELETED', async () => {
      const name = aName();
      const made = await aConfigMap(name);
      await kit.client.patch(configMaps, ref(name), { metadata: { labels: { watched: name } } });
      await kit.client.patch(configMaps, ref(name), { metadata: { labels: null } });
      const seen = await eventsOf({ resourceVersion: versionOf(made), labelSelector: `watched=${name}` }, 2);
      expect(seen.map((s) => s.split(' ')[0])).toEqual(['ADDED', 'DELETED']);
    });

    // A real server does so once a minute.
    test.runIf(server === 'the model' || process.env['DEV_TEST_ALL'])(
      'that selects none of the changes gets bookmarks',
      { timeout: 2 * MINUTE_MS },
      async () => {
        const made = await aConfigMap(aName());
        const query = { resourceVersion: versionOf(made), labelSelector: 'watched=never' };
        const elsewhere = async (): Promise<void> => {
          await aConfigMap(aName());
          await kit.world.idle();
        };
        expect(await eventsOf(query, 1, elsewhere, 1.5 * MINUTE_MS)).toEqual(['BOOKMARK ']);
      },
    );

    // The server is restarted.
    test('from a resourceVersion that is too old gets 410 Gone', { timeout: 3 * MINUTE_MS }, async () => {
      expect(await eventsOf({ resourceVersion: await kit.world.ancientVersion() }, 1)).toEqual(['ERROR 410']);
    });

    test('the watcher turns this into a complete list and its changes, with growing versions', async () => {
      const name = aName();
      await aConfigMap(name, { labels: { watched: name } });
      const stop = new AbortController();
      const seen: StoreEvent<ConfigMap>[] = [];
      const running = watch({
        client: kit.client,
        resource: configMaps,
        namespace: kit.namespace,
        selector: `watched=${name}`,
        signal: stop.signal,
        emit: (event) => seen.push(event),
        onError: () => {},
        sleep: () => Promise.resolve(),
        random: () => 0,
      });
      await eventually('the list', () => seen.find((event) => event.type === 'synced'));
      await kit.client.patch(configMaps, ref(name), { data: { a: '2' } });
      await eventually('the change', () => seen.filter((event) => event.type === 'put')[1]);
      stop.abort();
      await running;
      expect(seen.slice(0, 3).map((event) => event.type)).toEqual(['restart', 'put', 'synced']);
    });
  });
});
