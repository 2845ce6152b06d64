/** The plans that wait for a cluster in the state that they begin in. */
import type { Verdict } from './life.ts';
import { type Plan, planCalled } from './plans.ts';
import { canBring, type State } from './states.ts';
import { WORKLOADS, type Workload } from './workloads.ts';

/** Pods that are created again and again are created with a delay. */
const MAX_AGAIN = 3;
const MAX_OF_ONE_CLUSTER = 12;

export class Pool {
  readonly #waiting = new Map<string, Plan[]>();
  readonly #verdicts = new Map<string, PromiseWithResolvers<Verdict>>();

  /** The verdict of a plan, which waits from now on if it is new. */
  verdict(name: string): Promise<Verdict> {
    const known = this.#verdicts.get(name);
    if (known) return known.promise;
    const plan = planCalled(name);
    const made = Promise.withResolvers<Verdict>();
    this.#verdicts.set(name, made);
    this.#waiting.set(plan.workload.name, [...(this.#waiting.get(plan.workload.name) ?? []), plan]);
    return made.promise;
  }

  judge(verdict: Verdict): void {
    this.#verdicts.get(verdict.plan)?.resolve(verdict);
  }

  /** No plan can be run any more. */
  fail(error: unknown): void {
    for (const { reject } of this.#verdicts.values()) reject(error);
    this.#waiting.clear();
  }

  get size(): number {
    return [...this.#waiting.values()].reduce((sum, plans) => sum + plans.length, 0);
  }

  /** The next one for a cluster in this state, with what it has played since it was created; none if it has done enough. */
  take(state: State, played: readonly Workload[]): Plan | undefined {
    const chosen = this.#choose(state, played);
    return chosen && this.#waiting.get(chosen.name)?.shift();
  }

  #choose(state: State, played: readonly Workload[]): Workload | undefined {
    if (state === 'spent' || played.length >= MAX_OF_ONE_CLUSTER) return undefined;
    const times = (workload: Workload): number => played.filter(({ name }) => name === workload.name).length;
    const waiting = WORKLOADS.filter((workload) => this.#count(workload) > 0 && times(workload) < MAX_AGAIN);
    const here = waiting.filter(({ from }) => from.includes(state));
    const isNew = here.filter((workload) => times(workload) === 0);
    const goesOn = isNew.filter(({ to }) => to !== 'none' && to !== 'spent');
    const elsewhere = waiting.filter(({ from }) => canBring(state, from[0]));
    return this.#most(goesOn) ?? this.#most(isNew) ?? this.#most(here) ?? this.#most(elsewhere);
  }

  #most(workloads: readonly Workload[]): Workload | undefined {
    return workloads.toSorted((a, b) => this.#count(b) - this.#count(a))[0];
  }

  #count({ name }: Workload): number {
    return this.#waiting.get(name)?.length ?? 0;
  }
}
