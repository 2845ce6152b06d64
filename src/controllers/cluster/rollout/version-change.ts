/** Why the version of members may not be changed now, and what has to be done before. */
import type { Blocked } from '../../../domain/disruption.ts';
import type { ClusterDecision, Observed } from '../observed.ts';

/** Why no member's version may be changed now. */
export const versionChangeBlockedBy = (_o: Observed): Blocked | undefined => undefined;

/** A step that must be done before the version of the first member is changed. */
export const beforeVersionChange = (_o: Observed): ClusterDecision | undefined => undefined;
