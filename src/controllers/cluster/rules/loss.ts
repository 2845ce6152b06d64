/** Rules for a cluster whose data no member can serve any more. They have no steps: what is left is for a person to save. */

import { type Loss, lossOfAll } from '../loss.ts';
import type { Decided, Observed } from '../observed.ts';

const answering = (o: Observed, reason: Loss['reason']): Decided => {
  const loss = lossOfAll(o);
  return loss?.reason === reason ? { message: loss.message } : undefined;
};

/** A cluster that once existed is never bootstrapped again: that would hide the loss behind an empty database. */
export const allMembersLost = (o: Observed): Decided => answering(o, 'AllMembersLost');

/** Replacing a member would delete a volume that may have the last copy of the data. */
export const noReadableData = (o: Observed): Decided => answering(o, 'NoReadableData');
