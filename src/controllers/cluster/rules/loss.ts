/** Rules for a cluster whose data no member can serve any more. They have no steps: any write could destroy what a user can still recover. */

import { type Loss, lossOfAll } from '../loss.ts';
import type { Decided, Observed } from '../observed.ts';

const forReason = (o: Observed, reason: Loss['reason']): Decided => {
  const loss = lossOfAll(o);
  return loss?.reason === reason ? { message: loss.message } : undefined;
};

/** A cluster that once existed is never bootstrapped again: that would hide the loss behind an empty database. */
export const allMembersLost = (o: Observed): Decided => forReason(o, 'AllMembersLost');

/** Replacing a member would delete a volume that may have the last copy of the data. */
export const noReadableData = (o: Observed): Decided => forReason(o, 'NoReadableData');
