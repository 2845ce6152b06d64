/** CRDs that are older than the operator: named, and waited for. With a real API server: test/integration/api-upgrade.test.ts. */
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { crds } from '../api/crds.ts';
import { type Clock, systemClock } from '../runtime/clock.ts';
import { whenCurrent } from './outdated-crds.ts';

const clock: Clock = {
  ...systemClock,
  after: (_, call) => {
    queueMicrotask(call);
    return () => undefined;
  },
};
const schemaOf = ({ spec }: (typeof crds)[number]) => {
  const [version] = spec['versions'] as [{ readonly schema: { readonly openAPIV3Schema: { properties: object } } }];
  return version.schema.openAPIV3Schema;
};
/** As the API server publishes it, with a change of the properties of each kind. */
const openapi = (change: (properties: object) => object = (properties) => properties) => ({
  components: {
    schemas: Object.fromEntries(
      crds.map((crd) => {
        const { kind } = crd.spec['names'] as { readonly kind: string };
        const schema = { ...schemaOf(crd), properties: change(schemaOf(crd).properties) };
        return [kind, { ...schema, 'x-kubernetes-group-version-kind': [{ kind }] }];
      }),
    ),
  },
});
const withoutStatus = openapi((properties) =>
  Object.fromEntries(Object.entries(properties).filter(([field]) => field !== 'status')),
);

async function waited(...answers: readonly unknown[]) {
  const lines: string[] = [];
  const log = pino(
    { base: null },
    { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) },
  );
  const reports: number[] = [];
  const left = [...answers];
  const json = <T>(): Promise<T> => {
    const answer = left.shift();
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as T);
  };
  const { signal } = new AbortController();
  await whenCurrent({ json }, { clock, log, signal }, (outdated) => void reports.push(outdated.length));
  return { lines, reports, asked: answers.length - left.length };
}

test('the CRDs of this version are not older', async () => {
  expect(await waited(openapi())).toEqual({ lines: [], reports: [0], asked: 1 });
});

test('older ones are named once, and waited for', async () => {
  const { lines, reports, asked } = await waited(withoutStatus, withoutStatus, openapi());
  expect([reports, asked]).toEqual([[crds.length, crds.length, 0], 3]);
  expect(lines).toHaveLength(crds.length);
  expect(lines[0]).toContain('etcdclusters.etcd-operator.cozystack.io is older than this operator: it lacks status');
});

test('an API server that does not tell is not waited for', async () => {
  const { lines, reports } = await waited(new Error('404'));
  expect([lines, reports]).toEqual([['whether the CRDs are those of this version is unknown'], [0]]);
});
