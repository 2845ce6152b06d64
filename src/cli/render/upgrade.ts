/** The plan that `kubectl etcd upgrade` shows before it changes anything. */
import { obstacles, type UpgradePath, type UpgradeStep, upgradeSteps, type VersionChecks } from '../assess/upgrade.ts';
import { noted, type Paper, paint } from './style.ts';
import { type Columns, table } from './table.ts';

const STEPS: Columns<UpgradeStep> = [
  { head: 'SPEC.VERSION', cell: ({ version }) => version },
  { head: 'FROM', cell: ({ from }) => from },
  { head: 'WHAT', cell: ({ what }) => what },
];

/** `checks` are those before the first step: the operator makes them again before each. */
export function upgradePlan(
  paper: Paper,
  title: string,
  path: UpgradePath,
  { wanted, checks }: { readonly wanted: string; readonly checks: VersionChecks },
): string {
  const before = obstacles(checks);
  const own = checks.found.filter((each) => !before.includes(each));
  return [
    paint(paper, 'bold', title),
    ...table(paper, STEPS, upgradeSteps(path, wanted), '  '),
    '',
    `Checks of the operator before ${path.stops[0]}:${checks.found.length > 0 ? '' : ` nothing is wrong${checks.limits.length > 0 ? ', as far as could be read' : ''}`}`,
    ...before.flatMap(({ reason, message }) => noted(paper, 'warn', `! ${reason}: ${message}`, '  ')),
    ...own.flatMap(({ message }) => noted(paper, undefined, `the operator does this first: ${message}`, '  ')),
    ...checks.limits.flatMap((limit) => noted(paper, 'dim', `Not checked: ${limit}`, '  ')),
  ].join('\n');
}
