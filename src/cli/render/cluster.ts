/** One screen about one cluster. */
import type { Condition } from '../../api/conditions.ts';
import { isOfNote } from '../assess/fleet.ts';
import { mayFail } from '../assess/health.ts';
import type { MemberRow } from '../assess/members.ts';
import type { ClusterReport } from '../assess/report.ts';
import { backupLines, certificateLines, eventLines } from './cluster-parts.ts';
import { TONES } from './fleet.ts';
import { defragLines, rolloutLines } from './maintenance.ts';
import { isNearQuota, memberLines } from './members.ts';
import { noted, type Paper, paint, type Tone, wrap } from './style.ts';
import { bytes, duration, percent, plural } from './units.ts';

export interface ScreenOptions {
  readonly wide: boolean;
  readonly now: number;
}

const INDENT = '  ';
const LABEL = 13;

export function clusterScreen(paper: Paper, report: ClusterReport, options: ScreenOptions): string {
  const sections: readonly (readonly string[])[] = [
    headLines(paper, report),
    factLines(paper, report),
    memberLines(paper, report, options),
    operatorLines(paper, report, options),
    defragLines(paper, report, options),
    certificateLines(paper, report, options),
    backupLines(paper, report, options),
    eventLines(paper, report, options),
    report.unread.flatMap(({ what, message }) => noted(paper, 'dim', `Not shown: ${what}: ${message}`)),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

function headLines(paper: Paper, { namespace, name, health, summary }: ClusterReport): readonly string[] {
  const title = `etcd cluster ${namespace}/${name}`;
  const state = health.toUpperCase();
  const gap = Math.max(2, paper.width - title.length - state.length);
  return [
    `${paint(paper, 'bold', title)}${' '.repeat(gap)}${paint(paper, TONES[health], state)}`,
    ...wrap(summary, paper.width),
  ];
}

const labelled = (paper: Paper, label: string, text: string, tone?: Tone): readonly string[] =>
  wrap(text, paper.width - LABEL).map(
    (line, index) => paint(paper, 'dim', (index === 0 ? label : '').padEnd(LABEL)) + paint(paper, tone, line),
  );

function factLines(paper: Paper, report: ClusterReport): readonly string[] {
  const { quorum, version, leader, members, pdb, clusterID } = report;
  const largest = members.reduce<MemberRow | undefined>(
    (most, member) => ((member.databaseBytes ?? 0) > (most?.databaseBytes ?? -1) ? member : most),
    undefined,
  );
  const from = quorum?.source === 'operator' ? ' (as the operator reports; no member was asked)' : '';
  return [
    ...(quorum
      ? labelled(
          paper,
          'Quorum',
          `${quorum.needed} of ${plural(quorum.voters, 'voter')} needed, ${quorum.healthy} healthy: ${quorum.margin < 0 ? 'lost' : mayFail(quorum)}${from}`,
          quorum.margin < 0 ? 'bad' : quorum.healthy < quorum.voters ? 'warn' : undefined,
        )
      : []),
    ...(leader === undefined ? [] : labelled(paper, 'Leader', leader)),
    ...labelled(paper, 'Version', versionText(version)),
    ...(largest?.databaseBytes === undefined
      ? []
      : labelled(paper, 'Database', databaseText(largest), isNearQuota(largest) ? 'warn' : undefined)),
    ...(clusterID === undefined ? [] : labelled(paper, 'Cluster ID', clusterID)),
    ...(pdb
      ? labelled(
          paper,
          'PDB',
          `${plural(pdb.disruptionsAllowed, 'disruption')} allowed (${pdb.currentHealthy} healthy, ${pdb.desiredHealthy} needed)`,
          pdb.disruptionsAllowed === 0 ? 'warn' : undefined,
        )
      : []),
  ];
}

const versionText = ({ wanted, running }: ClusterReport['version']): string =>
  running === undefined || running === wanted ? wanted : `${wanted} wanted, ${running} running`;

const databaseText = ({ databaseBytes = 0, inUseBytes = 0, quotaBytes = 0 }: MemberRow): string =>
  `${bytes(databaseBytes)} of ${bytes(quotaBytes)} quota (${percent(databaseBytes, quotaBytes)}), ${bytes(inUseBytes)} in use`;

function operatorLines(paper: Paper, report: ClusterReport, { wide, now }: ScreenOptions): readonly string[] {
  const { conditions, behind, suspended } = report.operator;
  if (conditions.length === 0 && !behind) return [];
  const shown = wide ? conditions : conditions.filter(isOfNote);
  return [
    paint(paper, 'bold', 'Operator'),
    ...(suspended ? noted(paper, 'warn', 'suspended: it changes nothing in this cluster', INDENT) : []),
    ...(behind
      ? noted(paper, 'warn', 'it has not reacted to the last edit of the spec yet; check that it runs', INDENT)
      : []),
    ...rolloutLines(paper, report, { now }),
    ...shown.flatMap((condition) => conditionLines(paper, condition, now)),
  ];
}

function conditionLines(paper: Paper, condition: Condition, now: number): readonly string[] {
  const { type, status, reason, message, lastTransitionTime } = condition;
  const age = duration(now - Date.parse(lastTransitionTime));
  const lines = wrap(`${type}=${status} ${reason} for ${age}: ${message}`, paper.width - 4);
  return lines.map((line, index) => `${index === 0 ? INDENT : INDENT.repeat(2)}${line}`);
}
