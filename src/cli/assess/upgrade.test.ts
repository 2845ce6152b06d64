import { describe, expect, test } from 'vitest';
import { facts, member } from '../../../test/support/builders/plugin.ts';
import type { ClusterFacts } from './facts.ts';
import { obstacles, upgradePath, upgradeSteps } from './upgrade.ts';

const running = (versions: readonly string[], more: Parameters<typeof facts>[0] = {}): ClusterFacts =>
  facts({
    spec: { version: versions[0] ?? '3.6.16' },
    ...more,
    members: versions.map((version, index) => member(index + 1, { answer: { version } })),
  });
const rolling = { rollout: { since: '2026-01-01T11:59:00Z' } };

describe('the way', () => {
  test.each<[string, ClusterFacts, string, readonly string[]]>([
    ['through every minor', running(['3.5.30', '3.5.30', '3.5.30']), '3.7.3', ['3.5.35', '3.6.16', '3.7.3']],
    ['of a patch release is itself', running(['3.6.1', '3.6.1', '3.6.1']), '3.6.17', ['3.6.17']],
    [
      'of a rollout in progress goes on to its own version',
      running(['3.5.35', '3.6.14', '3.5.35'], { spec: { version: '3.6.14' }, status: rolling }),
      '3.7.3',
      ['3.6.14', '3.7.3'],
    ],
    [
      'does not stop at a version in progress that the next minor cannot be reached from',
      running(['3.5.35', '3.6.2', '3.5.35'], { spec: { version: '3.6.2' }, status: rolling }),
      '3.7.3',
      ['3.6.16', '3.7.3'],
    ],
    [
      'back from an upgrade in progress needs no flag',
      running(['3.5.35', '3.6.16', '3.5.35'], { spec: { version: '3.6.16' }, status: rolling }),
      '3.5.35',
      ['3.5.35'],
    ],
    [
      'of members that do not respond is by the version that they had',
      facts({
        spec: { version: '3.6.16' },
        members: [1, 2].map((index) => {
          const down = member(index, { answer: { is: 'failed', message: 'x' } });
          return { ...down, object: { ...down.object, status: { ...down.object.status, version: '3.6.16' } } };
        }),
      }),
      '3.7.3',
      ['3.7.3'],
    ],
  ])('%s', (_, given, to, stops) => expect(upgradePath(given, to)).toMatchObject({ stops }));

  test('to an earlier minor needs --downgrade', () => {
    const given = running(['3.7.3', '3.7.3', '3.7.3']);
    expect(upgradePath(given, '3.6.16')).toContain('pass --downgrade');
    expect(upgradePath(given, '3.5.35', true)).toMatchObject({ stops: ['3.6.16', '3.5.35'] });
  });

  test.each<[string, ClusterFacts, string, string]>([
    ['no version', running(['3.6.16']), 'v3.6.16', '--to must be a version such as 3.6.16, not "v3.6.16"'],
    ['an unknown minor between', running(['3.7.3']), '3.9.1', 'Set version to the newest release of 3.8 first'],
    [
      'a pinned image',
      running(['3.6.16'], { spec: { version: '3.6.16', image: { digest: 'sha256:1' } } }),
      '3.7.3',
      'digest',
    ],
    ['members that have reported nothing', facts({ members: [] }), '3.7.3', 'no member of db has reported'],
  ])('is refused: %s', (_, given, to, says) => expect(upgradePath(given, to)).toContain(says));
});

test('a step is what it does to the minor, or goes on with what was edited already', () => {
  const path = { running: ['3.6.14', '3.6.16'], stops: ['3.6.16', '3.7.3', '3.7.4', '3.6.16'] };
  expect(upgradeSteps(path, '3.6.16').map(({ from, what }) => `${from}: ${what}`)).toEqual([
    '3.6.14, 3.6.16: in progress',
    '3.6.16: next minor',
    '3.7.3: patch release',
    '3.7.4: in progress',
  ]);
});

test('what the operator does by itself is no obstacle', () => {
  const found = ['AlarmRaised', 'ComparingData', 'TakingSnapshot', 'MembersUnhealthy'].map((reason) => ({
    reason,
    message: '',
  }));
  expect(obstacles({ found, limits: [] }).map(({ reason }) => reason)).toEqual(['AlarmRaised', 'MembersUnhealthy']);
});
