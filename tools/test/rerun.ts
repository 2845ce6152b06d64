/**
 * Which failed tests are run once more. A test with real servers may fail because a core was busy; a broken invariant, a lost
 * write or any other assertion about data is a finding however rarely it happens, so it fails the run at once.
 */
import { ABOUT_DATA } from '../../test/support/about-data.ts';
import type { Level } from './arguments.ts';

export interface FailedTest {
  readonly file: string;
  /** Absent when the file itself failed: it could not be loaded, or a hook of it threw. */
  readonly name?: string;
  readonly messages: readonly string[];
}

const WITH_SERVERS: readonly Level[] = ['contract', 'integration', 'e2e'];

/** With a third flaky test the run has failed: the suite is not reliable then. */
export const MAX_RERUNS = 2;

/** The reason why the failed tests of a level are not run again; undefined where they are. */
export function rerunRefusedBecause(
  level: Level,
  failed: readonly FailedTest[],
  alreadyRerun: number,
): string | undefined {
  if (!WITH_SERVERS.includes(level)) return `tests of the ${level} level do not depend on time`;
  if (failed.length === 0) return 'an error outside any test belongs to no test';
  const aboutData = failed.find(({ messages }) => messages.some((message) => message.includes(ABOUT_DATA)));
  if (aboutData) return `${describeTest(aboutData)} failed about data`;
  if (alreadyRerun + failed.length > MAX_RERUNS)
    return `${alreadyRerun + failed.length} tests failed in this run, and ${MAX_RERUNS} may be flaky at most`;
  return undefined;
}

/** The reruns of one run, whose levels may run side by side. */
export class Reruns {
  #used = 0;
  #atWork = 0;
  readonly #turns: (() => void)[] = [];

  /** As `rerunRefusedBecause`; what is not refused counts at once, so that two levels do not share the last rerun. */
  refusedBecause(level: Level, failed: readonly FailedTest[]): string | undefined {
    const refused = rerunRefusedBecause(level, failed, this.#used);
    if (refused === undefined) this.#used += failed.length;
    return refused;
  }

  /** Runs levels one after the other, beside other lanes. */
  async lane<T>(work: () => Promise<T>): Promise<T> {
    this.#atWork++;
    try {
      return await work();
    } finally {
      this.#rest();
    }
  }

  /** Resolves when every other lane has ended or waits here too: a test that failed beside them is run again alone. */
  async untilAlone(): Promise<void> {
    const turn = new Promise<void>((resolve) => this.#turns.push(resolve));
    this.#rest();
    await turn;
  }

  #rest(): void {
    this.#atWork--;
    const next = this.#atWork === 0 ? this.#turns.shift() : undefined;
    if (!next) return;
    this.#atWork++;
    next();
  }
}

export const describeTest = ({ file, name }: FailedTest): string => (name === undefined ? file : `${file} > ${name}`);
