/**
 * The order in which the files of a level start: those that take longest first. A fresh checkout has no record of earlier
 * runs, and vitest then starts the largest files first; a short file that waits for minutes would start last, and the run
 * would wait for it alone.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** In seconds as measured on two cores; a file that is not here takes less than a minute. */
const SECONDS: Readonly<Record<string, number>> = {
  'test/e2e/killed.test.ts': 240,
  'test/e2e/rotation.test.ts': 170,
  'test/e2e/tls.test.ts': 150,
  'test/e2e/snapshot.test.ts': 140,
  'test/e2e/auth.test.ts': 135,
  'test/e2e/data-loss.test.ts': 130,
  'test/e2e/cert-manager.test.ts': 90,
  'test/e2e/first-cluster.test.ts': 85,
  'test/e2e/pod-loss.test.ts': 80,
  'test/e2e/growth.test.ts': 75,
  'test/e2e/parking.test.ts': 65,
  'test/integration/sweep.test.ts': 125,
  'test/integration/schedule.test.ts': 120,
  'test/integration/snapshot.test.ts': 95,
  'test/integration/auth.test.ts': 85,
  'test/integration/rotation.test.ts': 80,
  'test/integration/upkeep.test.ts': 75,
  'test/integration/restore.test.ts': 70,
  'test/integration/fuzz.test.ts': 60,
  'test/integration/engine-faults.test.ts': 70,
  'test/integration/tls.test.ts': 65,
};

const expected = ({ moduleId }: TestSpecification): number =>
  Object.entries(SECONDS).find(([file]) => moduleId.endsWith(file))?.[1] ?? 0;

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => expected(b) - expected(a));
  }
}
