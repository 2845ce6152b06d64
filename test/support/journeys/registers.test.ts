import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { RegisterClient, type Registers, whatTheySaw } from './registers.ts';

/** A store of one process; what is done to it is linearizable unless `read` lies. */
function aStore(change: Partial<Registers> = {}): () => Registers {
  const keys = new Map<string, string>();
  return () => ({
    write: async (key, value) => void keys.set(key, value),
    read: async (key) => keys.get(key),
    close: () => undefined,
    ...change,
  });
}

/** Clients that have made enough requests to be judged: by number, because a busy machine makes few in a given time. */
const someClients = async (open: () => Registers): Promise<readonly RegisterClient[]> => {
  let requests = 0;
  const counted = (): Registers => {
    const registers = open();
    return {
      ...registers,
      write: (key, value) => registers.write(key, value).finally(() => requests++),
      read: (key) => registers.read(key).finally(() => requests++),
    };
  };
  const clients = ['a', 'b'].map((name) => new RegisterClient({ name, keys: ['x', 'y'], open: counted, pauseMs: 1 }));
  while (requests < 40) await sleep(1);
  return clients;
};

test('what clients of a store see that keeps its word is linearizable', async () => {
  const seen = await whatTheySaw(await someClients(aStore()));
  expect(seen).toMatchObject({ failures: [], wrong: undefined });
  expect(seen.acknowledged).toBeGreaterThan(5);
});

test('a store that forgets acknowledged writes is found out', async () => {
  const seen = await whatTheySaw(await someClients(aStore({ read: async () => undefined })));
  expect(seen.wrong).toContain('read nothing');
});

test('a write that fails is reported, may have happened, and the client connects again', async () => {
  let connections = 0;
  let broken = true;
  const store = aStore();
  const open = (): Registers => {
    connections++;
    const registers = store();
    const write = async (key: string, value: string): Promise<void> => {
      await registers.write(key, value);
      if (!broken) return;
      broken = false;
      throw new Error('request timed out');
    };
    return { ...registers, write };
  };
  const seen = await whatTheySaw(await someClients(open));
  expect(seen.failures).toEqual(['Error: request timed out']);
  expect(seen.wrong).toBeUndefined();
  expect(connections).toBe(3);
});
