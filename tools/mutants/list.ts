/** Every fault. */
import { adoption } from './adoption.ts';
import { auth } from './auth.ts';
import { certificates } from './certificates.ts';
import { cluster } from './cluster.ts';
import { clusterRules } from './cluster-rules.ts';
import { evidenceFaults } from './evidence.ts';
import { gateFaults } from './gate.ts';
import { hostile } from './hostile.ts';
import { issuance } from './issuance.ts';
import { member } from './member.ts';
import { memberRunning } from './member-running.ts';
import type { Mutant } from './mutant.ts';
import { quotas } from './quota.ts';
import { refused } from './refused.ts';
import { repair } from './repair.ts';
import { restore } from './restore.ts';
import { storedSnapshots } from './retention.ts';
import { rotation } from './rotation.ts';
import { runtime } from './runtime.ts';
import { schedule } from './schedule.ts';
import { snapshot } from './snapshot.ts';
import { unread } from './unread.ts';

export const mutants: readonly Mutant[] = [
  ...adoption,
  ...auth,
  ...certificates,
  ...cluster,
  ...clusterRules,
  ...evidenceFaults,
  ...gateFaults,
  ...hostile,
  ...issuance,
  ...member,
  ...memberRunning,
  ...repair,
  ...quotas,
  ...restore,
  ...rotation,
  ...refused,
  ...runtime,
  ...schedule,
  ...snapshot,
  ...storedSnapshots,
  ...unread,
];
