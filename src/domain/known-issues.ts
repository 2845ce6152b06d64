/** Released versions of etcd with bugs that lose data, let others in, or stop members: they run, and the status names the bug. */
import { versionNumber } from '../lib/version.ts';

export type Risk = 'DataCorruption' | 'Security' | 'Unsupported' | 'Availability';

export interface KnownIssue {
  readonly risk: Risk;
  /** The first and the last affected version. */
  readonly first: string;
  readonly last: string;
  /** The first version without it. */
  readonly fixed: string;
  readonly bug: string;
}

const issue = (risk: Risk, first: string, last: string, fixed: string, bug: string): KnownIssue => ({
  risk,
  first,
  last,
  fixed,
  bug,
});

const SNAPSHOT_AND_DEFRAG = 'a member that receives a snapshot while it is defragmented may have corrupt data';
const AUTH_BYPASS = 'reads may be stale, and auth can be bypassed (CVE-2026-33413, CVE-2026-33343)';
const NO_ADD = 'no member can be added while another one is down; CVE-2026-44283';
const HANDSHAKES = 'TLS handshakes can exhaust a member; with auth, a watch may show keys beyond its range';

/** In the order in which they are reported: the worst first. */
export const KNOWN_ISSUES: readonly KnownIssue[] = [
  issue('DataCorruption', '3.5.0', '3.5.2', '3.5.4', 'members may have different data after a crash'),
  issue(
    'DataCorruption',
    '3.5.0',
    '3.5.5',
    '3.5.6',
    'a crash during a defragmentation leaves members with different data',
  ),
  issue(
    'DataCorruption',
    '3.5.5',
    '3.5.5',
    '3.5.6',
    'a member that is added while auth is enabled may have different data',
  ),
  issue('DataCorruption', '3.5.0', '3.5.16', '3.5.17', 'a transaction may be applied in part'),
  issue('DataCorruption', '3.5.0', '3.5.22', '3.5.23', SNAPSHOT_AND_DEFRAG),
  issue('DataCorruption', '3.6.0', '3.6.4', '3.6.5', SNAPSHOT_AND_DEFRAG),
  issue('Security', '3.5.0', '3.5.27', '3.5.28', AUTH_BYPASS),
  issue('Security', '3.6.0', '3.6.8', '3.6.9', AUTH_BYPASS),
  issue('Security', '3.5.0', '3.5.29', '3.5.30', NO_ADD),
  issue('Security', '3.6.0', '3.6.10', '3.6.11', NO_ADD),
  issue('Security', '3.5.0', '3.5.32', '3.5.33', HANDSHAKES),
  issue('Security', '3.6.0', '3.6.13', '3.6.14', HANDSHAKES),
  issue('Security', '3.7.0', '3.7.0', '3.7.1', HANDSHAKES),
  issue(
    'Unsupported',
    '0.0.0',
    '3.4.999',
    '3.5.33',
    'etcd before 3.5 gets no fixes, and the operator is not tested with it',
  ),
  issue(
    'Availability',
    '3.5.1',
    '3.5.19',
    '3.5.26',
    'after an upgrade to 3.6, members that joined as learners may not start',
  ),
  issue('Availability', '3.6.0', '3.6.3', '3.6.4', 'a member may not start after a learner was promoted'),
];

const affects = (version: string, { first, last }: KnownIssue): boolean =>
  versionNumber(first) <= versionNumber(version) && versionNumber(version) <= versionNumber(last);

export const knownIssues = (version: string): readonly KnownIssue[] =>
  KNOWN_ISSUES.filter((issue) => affects(version, issue));

/** `etcd 3.5.2: … (fixed in 3.5.4); …`; `undefined` for a version without known issues. */
export function issuesMessage(version: string): string | undefined {
  const issues = knownIssues(version);
  if (issues.length === 0) return undefined;
  return `etcd ${version}: ${issues.map(({ bug, fixed }) => `${bug} (fixed in ${fixed})`).join('; ')}`;
}
