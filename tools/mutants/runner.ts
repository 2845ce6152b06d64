/**
 * Runs in the test process, over sources with switches (`withSwitches`). First it records which faults each test reaches; then
 * it repeats each test for the faults that it reaches and that no earlier test has detected. vitest itself repeats, so hooks run
 * before each attempt as before any test.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type RunnerTestCase, TestRunner } from 'vitest';
import type { Line, Order } from './switched.ts';
import { ENDLESS, NONE, state } from './switches.ts';

type Attempt = Parameters<TestRunner['onBeforeTryTask']>[1];

export default class FaultRunner extends TestRunner {
  readonly #order: Order;
  readonly #left: Set<number>;
  readonly #isRecording: boolean;
  #queue: number[] = [];
  #started = 0;
  /** What the last attempt detected. The test must pass again without it: a fault that stays in a cache would count as many. */
  #unproven = NONE;

  constructor(config: ConstructorParameters<typeof TestRunner>[0]) {
    super(config);
    this.#order = JSON.parse(readFileSync(join(config.root, 'order.json'), 'utf8')) as Order;
    this.#isRecording = this.#order.faults.length === 0;
    const shared: typeof globalThis & { $left?: Set<number> } = globalThis; // vitest creates a runner for each file
    this.#left = shared.$left ??= new Set(this.#order.faults);
    state.onEndless = () => this.#log({ endless: state.fault });
  }

  #log(line: Line): void {
    appendFileSync(join(this.config.root, 'log.jsonl'), `${JSON.stringify(line)}\n`);
  }

  #logReached(test: string, file: string): void {
    const ms = performance.now() - this.#started;
    const isAsync = file !== '' && /\bawait\b/.test(readFileSync(join(this.config.root, file), 'utf8'));
    this.#log({ test, file, isAsync, ms, calls: state.calls, reached: [...state.reached], asked: [...state.asked] });
    Object.assign(state, { reached: new Set(), asked: new Map() });
  }

  override async onBeforeRunTask(test: RunnerTestCase): Promise<void> {
    await super.onBeforeRunTask(test);
    if (this.#isRecording || (test.mode !== 'run' && test.mode !== 'queued')) return;
    this.#queue = (this.#order.tests[test.id]?.reached ?? []).filter((id) => this.#left.has(id));
    if (this.#queue.length === 0) test.mode = 'skip';
    test.repeats = Math.max(0, 2 * this.#queue.length - 1); // after each detected fault, once without it
  }

  override onBeforeTryTask(test: RunnerTestCase, attempt: Attempt): void {
    super.onBeforeTryTask(test, attempt);
    if (this.#isRecording) this.#logReached('', '');
    const known = this.#order.tests[test.id];
    if (known) state.limit = 10 * known.calls + ENDLESS;
    state.calls = 0;
    state.fault = this.#unproven === NONE ? (this.#queue.shift() ?? NONE) : NONE;
    if (state.fault !== NONE) this.#log({ trying: state.fault });
    this.#started = performance.now();
  }

  async runTask(test: RunnerTestCase): Promise<void> {
    const isIdle = state.fault === NONE && this.#unproven === NONE && !this.#isRecording;
    if (!isIdle) await TestRunner.getTestFn(test)();
  }

  override async onAfterRetryTask(test: RunnerTestCase, attempt: Attempt): Promise<void> {
    await super.onAfterRetryTask(test, attempt);
    const { fault } = state;
    state.fault = NONE;
    state.limit = Number.POSITIVE_INFINITY;
    if (this.#isRecording) return this.#logReached(test.id, test.file.name);
    this.#judge(fault, test);
    if (test.result) Object.assign(test.result, { errors: undefined, attempts: [] });
  }

  #judge(fault: number, { name, result }: RunnerTestCase): void {
    const isFailed = result?.state === 'fail';
    const unproven = this.#unproven;
    this.#unproven = fault !== NONE && isFailed ? fault : NONE;
    if (unproven === NONE) return;
    if (isFailed)
      this.#queue = []; // the test fails without a fault, too
    else {
      this.#left.delete(unproven);
      this.#log({ noticed: unproven, by: name });
    }
  }
}
