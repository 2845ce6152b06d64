/** Which changes of the etcd version are possible on the same data. */
import { describe, expect, test } from 'vitest';
import { clusterVersionOf, minorOf, pathRefused, versionPath } from './version-path.ts';

test.each<[string, readonly string[], string]>([
  ['nothing changes', ['3.6.16', '3.6.16', '3.6.16'], '3.6.16'],
  ['a later patch release', ['3.6.11'], '3.6.16'],
  ['an earlier patch release', ['3.6.16', '3.6.16'], '3.6.9'],
  ['a patch release of a minor that is not known yet', ['3.9.1'], '3.9.4'],
  ['an old patch release to a later one', ['3.5.2'], '3.5.35'],
  ['3.5 to 3.6 from the first possible release', ['3.5.32'], '3.6.0'],
  ['3.6 to 3.7 from the first possible release', ['3.6.11'], '3.7.0'],
  ['3.7 to a minor that is not known yet', ['3.7.3'], '3.8.0'],
  ['3.7 back to 3.6', ['3.7.3', '3.7.3', '3.7.3'], '3.6.16'],
  ['3.6 back to 3.5', ['3.6.16'], '3.5.35'],
  ['an upgrade goes on', ['3.5.35', '3.6.16', '3.5.35'], '3.6.16'],
  ['an upgrade is taken back', ['3.6.16', '3.5.35', '3.5.35'], '3.5.35'],
  ['an upgrade that began below the floor goes on', ['3.5.10', '3.6.16'], '3.6.16'],
  ['a downgrade is taken back', ['3.6.16', '3.7.3', '3.7.3'], '3.7.3'],
  ['no member is known', [], '3.7.3'],
])('possible: %s', (_, running, target) => {
  expect(pathRefused(running, target)).toBeUndefined();
});

describe.each<[string, readonly string[], string, string, readonly string[]]>([
  ['two minors up', ['3.5.35'], '3.7.3', 'MinorSkipped', ['one minor at a time', 'Set version to 3.6.16 first']],
  [
    'another minor up before the first upgrade has ended',
    ['3.5.35', '3.6.16', '3.6.16'],
    '3.7.3',
    'MinorSkipped',
    ['members run etcd 3.5', 'Set version to 3.6.16 first'],
  ],
  ['another major', ['3.7.3'], '4.0.0', 'MinorSkipped', ['Set version to the newest release of 3.8 first']],
  [
    'two minors down',
    ['3.7.3'],
    '3.5.35',
    'DowngradeImpossible',
    ['Set version to 3.6.16 first', 'restore a snapshot'],
  ],
  [
    'a second minor down before the first downgrade has ended',
    ['3.7.3', '3.6.16'],
    '3.5.35',
    'DowngradeImpossible',
    ['members run etcd 3.7'],
  ],
  ['3.5 to 3.4', ['3.5.35'], '3.4.45', 'DowngradeImpossible', ['not below 3.5', 'Restore a snapshot']],
  [
    '3.6 from an old release of 3.5',
    ['3.5.35', '3.5.31'],
    '3.6.16',
    'PatchTooOld',
    ['etcd 3.5.31', 'too many learners', 'fixed in 3.5.32', 'Set version to 3.5.35 first'],
  ],
  [
    '3.7 from an old release of 3.6',
    ['3.6.10'],
    '3.7.3',
    'PatchTooOld',
    ['etcd 3.6.10', 'fixed in 3.6.11', 'Set version to 3.6.16 first'],
  ],
])('impossible: %s', (_, running, target, reason, parts) => {
  test('is refused with what to do instead', () => {
    const blocked = pathRefused(running, target);
    expect(blocked?.reason).toBe(reason);
    for (const part of parts) expect(blocked?.message).toContain(part);
  });
});

test('the cluster version of a release', () => {
  expect(clusterVersionOf(minorOf('3.6.16'))).toBe('3.6.0');
});

describe('the versions on the way', () => {
  test.each<[string, readonly string[], string, readonly string[]]>([
    ['nothing changes', ['3.6.16'], '3.6.16', ['3.6.16']],
    ['one minor', ['3.6.16', '3.6.16'], '3.7.1', ['3.7.1']],
    ['two minors', ['3.5.35'], '3.7.1', ['3.6.16', '3.7.1']],
    ['two minors from old releases', ['3.5.2'], '3.7.1', ['3.5.35', '3.6.16', '3.7.1']],
    ['a minor from an old release', ['3.6.2', '3.6.2'], '3.7.1', ['3.6.16', '3.7.1']],
    ['the first of two upgrades has not ended', ['3.5.35', '3.6.16'], '3.7.1', ['3.6.16', '3.7.1']],
    ['two minors down', ['3.7.3'], '3.5.35', ['3.6.16', '3.5.35']],
    ['a minor that is not known yet', ['3.6.2'], '3.8.0', ['3.6.16', '3.7.3', '3.8.0']],
  ])('%s', (_, running, target, path) => {
    expect(versionPath(running, target)).toEqual(path);
    let at = running;
    for (const stop of path) {
      expect(pathRefused(at, stop)).toBeUndefined();
      at = [stop];
    }
  });

  test.each<[string, readonly string[], string, string]>([
    ['no release of the minor between is known', ['3.7.3'], '3.9.0', 'MinorSkipped'],
    ['no way leads below 3.5', ['3.7.3'], '3.4.45', 'DowngradeImpossible'],
    ['another major', ['3.7.3'], '4.0.0', 'MinorSkipped'],
  ])('there is none: %s', (_, running, target, reason) => {
    expect(versionPath(running, target)).toEqual({ reason, message: expect.any(String) });
  });
});
