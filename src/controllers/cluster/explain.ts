/** What every stage answers, for people who ask why the operator does nothing: `kubectl etcd explain` and `upgrade --dry-run`. */
import type { Blocked } from '../../domain/disruption.ts';
import { iso } from '../../lib/time.ts';
import { firstOf } from '../../runtime/compose.ts';
import { type NamedRule, type Step, stepTarget } from '../../runtime/plan.ts';
import type { ClusterCall } from './calls.ts';
import { CREDENTIALS } from './credentials/decide.ts';
import { answerOf, BOOTSTRAP, decide, MAINTENANCE, MEMBERSHIP, observedOf, REST, STOP, UPKEEP } from './decide.ts';
import { type ClusterDecision, type Gathered, isFormed, type Observed } from './observed.ts';
import { versionChecks } from './rollout/version-change.ts';

type Rules = readonly NamedRule<Observed, ClusterDecision>[];

/** What one stage answers. */
export interface StageAnswer {
  readonly stage: 'stop' | 'upkeep' | 'bootstrap' | 'membership' | 'maintenance' | 'rest';
  /** Names of its rules. */
  readonly asked: readonly string[];
  /** Absent when it was asked. */
  readonly skipped?: string;
  readonly answers: readonly { readonly rule: string; readonly message: string; readonly steps: readonly string[] }[];
}

const stepsOf = (steps: readonly Step<ClusterCall>[]): readonly string[] =>
  steps.map((step) => `${step.do} ${stepTarget(step)}`);

/** Every stage with its answer, also of those that the plan has no step of: for people who ask why nothing happens. */
export function explain(gathered: Gathered): readonly StageAnswer[] {
  const { o } = observedOf(gathered);
  const stop = firstOf(STOP, o);
  const later = isFormed(o) ? ('membership' as const) : ('bootstrap' as const);
  const first = (stage: StageAnswer['stage'], rules: Rules, skipped?: string): StageAnswer => {
    const answer = skipped === undefined ? firstOf(rules, o) : undefined;
    const asked = rules.map(({ name }) => name);
    const { name: rule = '', decision } = answer ?? {};
    const answers = decision ? [{ rule, message: decision.message, steps: stepsOf(decision.steps ?? []) }] : [];
    return { stage, asked, answers, ...(skipped !== undefined && { skipped }) };
  };
  const ended = stop && `rule ${stop.name} ends the reconcile`;
  const membership = first(later, isFormed(o) ? MEMBERSHIP : BOOTSTRAP, ended);
  const isBusy = ended === undefined && !answerOf(o).atRest;
  const maintenance = first(
    'maintenance',
    MAINTENANCE,
    ended ?? (isBusy ? 'the membership is not at rest' : undefined),
  );
  const decided = [...membership.answers, ...maintenance.answers].length > 0;
  const plan = decide(gathered);
  return [
    first('stop', STOP),
    {
      stage: 'upkeep',
      asked: [...UPKEEP, ...CREDENTIALS].map(({ name }) => name),
      answers: (plan.contributions ?? []).map(({ row, message }) => ({
        rule: row,
        message,
        steps: (plan.upkeep ?? []).filter((task) => task.row === row).flatMap((task) => stepsOf(task.steps)),
      })),
      ...(ended !== undefined && { skipped: ended }),
    },
    membership,
    maintenance,
    first('rest', REST, ended ?? (decided ? 'another stage has decided' : undefined)),
  ];
}

/** What would keep members from getting this version, if a user edited the spec now: the edit takes the place of one that has failed. */
export function explainVersion(gathered: Gathered, version: string): readonly Blocked[] {
  const { cluster, now } = gathered;
  const status = { ...cluster.status, rollout: { since: iso(now) } };
  return versionChecks(
    observedOf({ ...gathered, cluster: { ...cluster, spec: { ...cluster.spec, version }, status } }).o,
  );
}
