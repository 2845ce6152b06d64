/** Changes of the etcd version: when a member may get the target version, and what etcd does first. */
import { describe, expect, test } from 'vitest';
import {
  down,
  type Is,
  joining,
  name,
  stepsOf,
  withCredentials,
  world,
} from '../../../../test/support/builders/members.ts';
import { beforeVersionChange, joinTarget, versionChangeBlockedBy } from './version-change.ts';

/** A member that runs this version, which is also in its spec. */
const at = (version: string, more: Is = {}): Is => {
  const minor = version.split('.')[1];
  const storageVersion = minor === '5' ? {} : { storageVersion: `3.${minor}.0` };
  return { runs: version, ...storageVersion, ...more, spec: { version, ...more.spec } };
};
const three = (version: string, more: Is = {}): readonly Is[] => [
  at(version, more),
  at(version, more),
  at(version, more),
];
const cluster = (members: readonly Is[], version: string) => world(members, { leader: 2, spec: { version } });
const observed = (members: readonly Is[], version: string) => withCredentials(cluster(members, version));
const before = (members: readonly Is[], version: string): string | undefined => {
  const decision = beforeVersionChange(observed(members, version));
  const [step] = decision?.steps ?? [];
  if (step?.do === 'call') return `${step.call.name} ${step.call.target}`;
  return decision?.message;
};

describe('the path', () => {
  test('is refused before anything is asked of etcd', () => {
    expect(versionChangeBlockedBy(observed(three('3.5.35'), '3.7.3'))?.reason).toBe('MinorSkipped');
  });
  test('counts the last version that a member reported', () => {
    const members = [at('3.7.3'), at('3.7.3'), at('3.7.3', down)];
    expect(versionChangeBlockedBy(observed(members, '3.5.35'))?.reason).toBe('DowngradeImpossible');
  });
});

describe('before a member gets the target version', () => {
  const rewritten = at('3.7.3', { storageVersion: '3.6.0', downgradeTo: '3.6.0' });
  test.each<[string, readonly Is[], string, string | undefined]>([
    ['a patch release: nothing', three('3.6.11'), '3.6.16', undefined],
    ['an upgrade: nothing', three('3.6.16'), '3.7.3', undefined],
    ['a downgrade: it is enabled', three('3.7.3'), '3.6.16', 'enableDowngrade 3.6.0'],
    ['a downgrade to 3.5: it is enabled', three('3.6.16'), '3.5.35', 'enableDowngrade 3.5.0'],
    [
      'a downgrade, before the upgrade has ended on all members: it waits',
      [at('3.7.3'), at('3.7.3', { storageVersion: '3.6.0' }), at('3.7.3')],
      '3.6.16',
      `waiting until ${name(2)} has finished its upgrade: then etcd can be downgraded`,
    ],
    [
      'a downgrade that is enabled: every member rewrites its data',
      [rewritten, at('3.7.3', { downgradeTo: '3.6.0' }), rewritten],
      '3.6.16',
      `waiting until ${name(2)} has rewritten its data for etcd 3.6`,
    ],
    ['a downgrade that all are ready for: nothing', [rewritten, rewritten, rewritten], '3.6.16', undefined],
    [
      'a downgrade to 3.5 that is half-way: nothing',
      [at('3.5.35'), at('3.6.16', { storageVersion: '3.5.0', downgradeTo: '3.5.0' })],
      '3.5.35',
      undefined,
    ],
    [
      'an upgrade that is taken back while a member runs the old minor: nothing',
      [at('3.7.3', { storageVersion: '3.6.0' }), at('3.6.16'), at('3.6.16')],
      '3.6.16',
      undefined,
    ],
    [
      'an upgrade from 3.5 that is taken back, with data that has no storage version: nothing',
      [{ runs: '3.6.16' }, at('3.5.35')],
      '3.5.35',
      undefined,
    ],
    [
      'a downgrade that is taken back before a member was changed: it is cancelled',
      [rewritten, rewritten, rewritten],
      '3.7.3',
      'cancelDowngrade 3.6.0',
    ],
    [
      'a downgrade that is taken back half-way: it is cancelled',
      [at('3.6.16', { downgradeTo: '3.6.0' }), rewritten, rewritten],
      '3.7.3',
      'cancelDowngrade 3.6.0',
    ],
    ['an image that never started is taken back: nothing', [at('3.7.99', down)], '3.6.16', undefined],
  ])('%s', (_, members, version, expected) => {
    expect(before(members, version)).toBe(expected);
  });

  test('a downgrade that is not wanted any more is cancelled although no member has to change', () => {
    expect(stepsOf(cluster([rewritten, rewritten, rewritten], '3.7.3'))).toEqual(['cancelDowngrade 3.6.0']);
  });

  test('etcd 3.5 does not respond to a cancellation: a member of 3.6 is asked, although another one leads', () => {
    const members = [at('3.6.16', { storageVersion: '3.5.0', downgradeTo: '3.5.0' }), at('3.5.35'), at('3.5.35')];
    const [step] = beforeVersionChange(observed(members, '3.6.16'))?.steps ?? [];
    expect(step?.do === 'call' && step.call.is === 'etcd' && step.call.endpoints[0]).toContain('10.0.0.1');
  });
});

describe('a member that joins', () => {
  const ready = at('3.7.3', { storageVersion: '3.6.0', downgradeTo: '3.6.0' });
  test.each<[string, readonly Is[], string, string]>([
    ['gets the target of a patch release', [...three('3.6.11')], '3.6.16', '3.6.16'],
    ['gets the version of the others before an upgrade has started', [...three('3.6.16')], '3.7.3', '3.6.16'],
    [
      'gets the target once a member has it',
      [at('3.6.16'), at('3.6.16', { spec: { version: '3.7.3' } })],
      '3.7.3',
      '3.7.3',
    ],
    ['gets the version of the others while the path is refused', [...three('3.5.35')], '3.7.3', '3.5.35'],
    ['gets the version of the others until a downgrade is ready', [...three('3.7.3')], '3.6.16', '3.7.3'],
    ['gets the target once a downgrade is ready', [ready, ready, ready], '3.6.16', '3.6.16'],
    ['gets the target once a member runs it', [at('3.6.16'), ready, ready], '3.6.16', '3.6.16'],
  ])('%s', (_, members, version, expected) => {
    const all = [...members, { ...joining, spec: { version: expected } }];
    expect(joinTarget(observed(all, version)).version).toBe(expected);
    expect(stepsOf(world(all, { leader: 2, replicas: all.length, spec: { version } }))).not.toContain(
      `delete ${name(all.length)}`,
    );
  });

  test('gets what is written for the version of the others, and everything else as it is wanted', () => {
    const image = { digest: `sha256:${'a'.repeat(64)}` };
    const had = { image, extraArgs: ['--experimental-a=1'] };
    const spec = { version: '3.7.3', extraArgs: ['--b=1'], priorityClassName: 'high' };
    const o = withCredentials(
      world([at('3.6.16', { spec: had }), at('3.6.16', { spec: had })], { leader: 2, replicas: 3, spec }),
    );
    expect(joinTarget(o)).toMatchObject({ version: '3.6.16', ...had, priorityClassName: 'high' });
  });

  test('in memory, where members are replaced, an upgrade begins with one that joins', () => {
    const memory = { storage: { size: '1Gi', medium: 'Memory' } } as const;
    const members = [at('3.6.16', { spec: memory }), at('3.6.16', { spec: memory })];
    const o = (status: object) =>
      withCredentials(world(members, { leader: 2, replicas: 3, spec: { version: '3.7.3', ...memory }, status }));
    const since = '2026-01-01T00:00:00Z';
    expect(joinTarget(o({ rollout: { since, checked: '3.7' } })).version).toBe('3.7.3');
    expect(joinTarget(o({ rollout: { since, checked: '3.6' } })).version).toBe('3.6.16');
    expect(joinTarget(o({ rollout: { since } })).version).toBe('3.6.16'); // another member is replaced than for the upgrade
  });
});
