/** A vitest reporter that writes the progress of the run to standard error. `./dev test` turns that into its progress line. */
import type { Reporter, TestCase } from 'vitest/node';

/** The prefix of a progress line; no test prints this character. */
export const MARK = '\u001e';
const INTERVAL_MS = 200;

export default class ProgressReporter implements Reporter {
  readonly #running = new Set<TestCase>();
  #files = 0;
  #filesDone = 0;
  #testsDone = 0;
  #failed = 0;
  #written = '';
  #timer: NodeJS.Timeout | undefined;

  onTestRunStart(specifications: readonly unknown[]): void {
    this.#files = specifications.length;
    this.#timer = setInterval(() => this.#tell(), INTERVAL_MS).unref();
  }

  onTestCaseReady(test: TestCase): void {
    this.#running.add(test);
  }

  onTestCaseResult(test: TestCase): void {
    this.#running.delete(test);
    this.#testsDone++;
    if (test.result().state === 'failed') this.#failed++;
  }

  onTestModuleEnd(): void {
    this.#filesDone++;
  }

  onTestRunEnd(): void {
    clearInterval(this.#timer);
  }

  #tell(): void {
    const [oldest] = this.#running;
    const failed = this.#failed > 0 ? `, ${this.#failed} failed` : '';
    const now = oldest ? `, now "${oldest.fullName}"` : '';
    const text = `${this.#testsDone} tests done${failed}, ${this.#filesDone} of ${this.#files} files${now}`;
    if (text !== this.#written) process.stderr.write(`${MARK}${text}\n`);
    this.#written = text;
  }
}
