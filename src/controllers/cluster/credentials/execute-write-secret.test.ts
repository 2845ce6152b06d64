import { expect, test } from 'vitest';
import { ModelApiServer } from '../../../../test/sim/model/kube.ts';
import type { Secret } from '../../../gen/kube.ts';
import { isConflict } from '../../../kube/errors.ts';
import { secrets } from '../../../kube/resources.ts';
import { writeSecret } from './execute-write-secret.ts';

const { signal } = new AbortController();
const ref = { namespace: 'ns', name: 's' };
const secret = (data: Readonly<Record<string, string>>) => ({
  apiVersion: 'v1' as const,
  kind: 'Secret' as const,
  metadata: ref,
  data,
});
const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

test.each<[string, (server: ModelApiServer, read: Secret) => Promise<Secret>]>([
  [
    'was changed since it was read',
    async (server, read) => {
      await server.patch(secrets, ref, { data: { theirs: 'eA==' } });
      return read;
    },
  ],
  [
    'was deleted since it was read, and created again',
    async (server, read) => {
      await server.delete(secrets, ref, { uid: read.metadata.uid ?? '' });
      await server.create(secrets, secret({ theirs: 'eA==' }));
      const { resourceVersion: _, ...metadata } = read.metadata; // only the uid differs
      return { ...read, metadata };
    },
  ],
])('a Secret is not overwritten that %s', async (_what, meanwhile) => {
  const server = new ModelApiServer();
  const read = await meanwhile(server, await server.create(secrets, secret({})));
  const before = await server.get(secrets, ref);
  expect(await failure(writeSecret(server, secret({ ours: 'eA==' }), read, signal))).toSatisfy(isConflict);
  expect(await server.get(secrets, ref)).toEqual(before);
});
