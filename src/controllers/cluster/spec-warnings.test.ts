import { describe, expect, test } from 'vitest';
import { APPLIED_SPECS, IGNORED_SPECS } from '../../../test/support/builders/ignored-specs.ts';
import { up, world } from '../../../test/support/builders/members.ts';
import { findCondition } from '../../domain/conditions.ts';
import { KNOWN_ISSUES, knownIssues } from '../../domain/known-issues.ts';
import { versionNumber } from '../../lib/version.ts';
import { decide } from './decide.ts';
import { arePeersPinned, type Gathered } from './observed.ts';

const reported = (type: string, o: Gathered) => findCondition(decide(o).status.conditions, type);

describe('a field that has no effect', () => {
  test.each(IGNORED_SPECS)('is named in a condition: %s', (field, spec) => {
    expect(reported('FieldsIgnored', world([up], { spec }))).toMatchObject({
      status: 'True',
      reason: 'NoEffect',
      message: expect.stringContaining(`${field} has no effect: `) as string,
    });
  });
  test.each(APPLIED_SPECS)('is not claimed of %s', (_what, spec) => {
    expect(reported('FieldsIgnored', world([up], { spec }))).toBeUndefined();
  });
  test('is named with its key, if it is metadata', () => {
    const spec = { additionalMetadata: { labels: { team: 'a', 'etcd-operator.cozystack.io/role': 'x' } } };
    const message = reported('FieldsIgnored', world([up], { spec }))?.message;
    expect(message).toContain('the keys are etcd-operator.cozystack.io/role');
    expect(message).not.toContain('team');
  });
});

describe('a version of etcd with known issues', () => {
  const running = (version: string): Gathered => {
    const o = world([up, up, up], { spec: { version: '3.6.16' } });
    const [first, ...others] = o.members;
    return first?.self ? { ...o, members: [{ ...first, self: { ...first.self, version } }, ...others] } : o;
  };
  test.each([
    ['3.5.2', 'DataCorruption', 'members may have different data after a crash (fixed in 3.5.4)'],
    ['3.5.22', 'DataCorruption', 'may have corrupt data (fixed in 3.5.23)'],
    ['3.6.4', 'DataCorruption', 'may have corrupt data (fixed in 3.6.5)'],
    ['3.6.5', 'Security', 'auth can be bypassed (CVE-2026-33413, CVE-2026-33343) (fixed in 3.6.9)'],
    ['3.7.0', 'Security', 'TLS handshakes can exhaust a member'],
    ['3.4.30', 'Unsupported', 'etcd before 3.5 gets no fixes'],
  ])('that a member runs is reported: %s', (version, reason, bug) => {
    expect(reported('KnownIssues', running(version))).toMatchObject({
      status: 'True',
      reason,
      message: expect.stringMatching(`^etcd ${version.replaceAll('.', '[.]')}: `) as string,
    });
    expect(reported('KnownIssues', running(version))?.message).toContain(bug);
  });
  test('has the reason of the worst of them, also when members run several versions', () => {
    const o = running('3.5.30');
    const [first, second, third] = o.members;
    if (!first || !second?.self || !third) throw new Error('there are three');
    const members = [first, { ...second, self: { ...second.self, version: '3.6.4' } }, third];
    expect(reported('KnownIssues', running('3.5.30'))?.reason).toBe('Security');
    expect(reported('KnownIssues', { ...o, members })?.reason).toBe('DataCorruption');
  });
  test('that only new members would get is reported too', () => {
    expect(reported('KnownIssues', world([up], { spec: { version: '3.6.0' } }))?.message).toContain('etcd 3.6.0: ');
  });
  test.each(['3.5.33', '3.6.14', '3.7.1', '3.8.0'])('is none of these: %s', (version) => {
    expect(reported('KnownIssues', running(version))).toBeUndefined();
  });
  test('is fixed in a version that lacks that very bug', () => {
    for (const { first, last, fixed, bug } of KNOWN_ISSUES) {
      expect(versionNumber(first)).toBeLessThanOrEqual(versionNumber(last));
      expect(knownIssues(first).map((issue) => issue.bug)).toContain(bug);
      expect(knownIssues(last).map((issue) => issue.bug)).toContain(bug);
      expect(knownIssues(fixed).map((issue) => issue.bug)).not.toContain(bug);
    }
  });
});

describe('S11: peers of a cluster whose members demand no name in peer certificates', () => {
  const tlsOf = (peer: object, members: readonly (string | undefined)[]): Gathered => {
    const o = world([up, up, up], { spec: { tls: { peer } } });
    const pinned = o.members.map((m, i) => {
      const tls = { peerSecretRef: { name: 'p' }, ...(members[i] && { peerCertAllowedHostname: members[i] }) };
      return { ...m, object: { ...m.object, spec: { ...m.object.spec, tls } } };
    });
    return { ...o, members: pinned };
  };
  const own = { secretRef: { name: 'mine' } };
  const name = 'peer.db.ns.svc';

  test('are reported where the CA is not the operator’s, and the cluster works as before', () => {
    const earlier = tlsOf(own, []);
    expect(reported('PeersPinned', earlier)).toMatchObject({ status: 'False', reason: 'PeerNameNotDemanded' });
    expect(decide(earlier).steps).toEqual(decide(world([up, up, up], { spec: { tls: { peer: own } } })).steps);
  });
  test('are not reported where the operator’s CA signs for peers only, or where all demand it', () => {
    expect(reported('PeersPinned', tlsOf({ managed: {} }, []))).toBeUndefined();
    expect(reported('PeersPinned', tlsOf(own, [name, name, name]))).toBeUndefined();
  });
  test('stay so: a new member demands the name only if every other one does', () => {
    expect([[], [name, name], [name, name, name]].map((members) => arePeersPinned(tlsOf(own, members)))).toEqual([
      false,
      false,
      true,
    ]);
  });
});
