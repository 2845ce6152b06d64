/** Certificates are renewed while anything else is refused, and nothing else waits for them. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { awaited, down, lost, unreachable, up, world } from '../../../../test/support/builders/members.ts';
import { clusters } from '../../../../test/support/builders/members-arbitrary.ts';
import { remembering } from '../../../../test/support/builders/plan.ts';
import { rotating, started, widening } from '../../../../test/support/builders/rotating.ts';
import { type CertificatesView, NO_CERTIFICATES } from '../../../access/evaluate/view.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';
import { CREDENTIALS } from './decide.ts';

const need = { role: 'peer', from: 'user', secret: 'mine', mount: 'db-peer-mounted' } as const;
const renewal: CertificatesView = {
  ...NO_CERTIFICATES,
  certificates: [{ need, findings: [], usable: true, todo: 'copyCertificate' }],
};
const spec = { tls: { peer: { secretRef: { name: 'mine' } } } };
const three = world([up, up, up], { spec });
const refused = (row: string, target: string) =>
  remembering('denied by a policy', { in: 'upkeep', row, target, retryInMs: 60_000 });

describe('a certificate is renewed', () => {
  test.each<[string, Gathered]>([
    [
      'while a Service is refused',
      { ...three, ...refused('services', 'Service db'), services: { ...three.services, headless: { is: 'absent' } } },
    ],
    [
      'while the PodDisruptionBudget is refused',
      { ...three, ...refused('pdb', 'PodDisruptionBudget db'), pdb: { is: 'absent' } },
    ],
    ['while the PodDisruptionBudget cannot be read', { ...three, pdb: { is: 'unknown', message: 'forbidden' } }],
    [
      'while a foreign object has the name of a Service',
      { ...three, services: { ...three.services, client: { is: 'foreign', owner: 'a user' } } },
    ],
    [
      'while the image of the spec is not allowed',
      world([up, up, up], { spec: { ...spec, image: { repository: 'evil.example.com/etcd' } } }),
    ],
    [
      'while etcd refuses to add a member',
      {
        ...world([up, up, up], { spec, replicas: 5 }),
        ...remembering('unhealthy cluster', { is: 'later', call: 'addLearner' }),
      },
    ],
    [
      'while the API server refuses to create a member',
      { ...world([up, awaited], { spec, replicas: 2 }), ...remembering('quota exceeded') },
    ],
    ['while the quorum is lost', world([up, down, down], { spec, etcd: unreachable })],
    ['while all members are lost', world([lost, lost, lost], { spec, etcd: unreachable })],
    [
      'while another cluster responds',
      world([up], { spec, etcd: { is: 'answers', clusterID: 'other', members: [], alarms: [] } }),
    ],
    [
      'while the members of a rotation wait for one that is down',
      rotating([started('x'), started('x'), started('x', down)], widening),
    ],
  ])('%s', (_, o) => {
    const task = decide({
      ...o,
      certificates: { ...o.certificates, ...renewal, trusts: o.certificates.trusts },
    }).upkeep;
    const own = task?.find(({ row }) => row === 'writeSecrets');
    expect(own).toMatchObject({ target: 'copyCertificate db-peer-mounted' });
    expect(own).not.toHaveProperty('deferred');
  });
});

test('members are added, removed and replaced while every row about credentials backs off', () => {
  const names = CREDENTIALS.map(({ name }) => name);
  let deferred = 0;
  fc.assert(
    fc.property(clusters, ({ cluster, ...rest }) => {
      const o = { ...rest, cluster: { ...cluster, spec: { ...cluster.spec, ...spec } }, certificates: renewal };
      const calm = decide(o);
      const failures = (calm.upkeep ?? [])
        .filter(({ row }) => names.includes(row))
        .flatMap(({ row, target }) => refused(row, target).memory.failures);
      const backsOff = decide({ ...o, memory: { failures, unconfirmed: [] } });
      expect([backsOff.rule, backsOff.steps]).toEqual([calm.rule, calm.steps]);
      const tasks = backsOff.upkeep?.filter(({ row }) => names.includes(row)) ?? [];
      expect(tasks.map((task) => task.deferred)).toEqual(failures.map(() => 'backOff'));
      deferred += tasks.length;
    }),
    { numRuns: 300 },
  );
  expect(deferred).toBeGreaterThan(100);
});

test.each<[string, Gathered]>([
  ['a renewal', { ...three, certificates: renewal }],
  ['the first step of a rotation', rotating([up, up, up], { next: { step: 'widen', digest: 'x' } })],
  [
    'the last step of a rotation',
    rotating([up], { recorded: 'x', next: { step: 'narrow', digest: 'y' } }, { view: { proven: ['peer'] } }),
  ],
  [
    'the enabling of auth',
    { ...world([up], { spec: { auth: { enabled: true } } }), auth: 'off', password: { kept: 'same' } },
  ],
])('%s ends when the cluster is deleted', (_, o) => {
  expect(decide(o).contributions).toHaveLength(1);
  const metadata = { ...o.cluster.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
  const { latch, upkeep = [], steps } = decide({ ...o, cluster: { ...o.cluster, metadata } });
  expect([latch, upkeep, steps]).toEqual([undefined, [], []]);
});
