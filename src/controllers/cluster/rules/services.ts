/** Rows of upkeep about the two Services, and the labels of what users see beside the members. */
import { independent } from '../../../runtime/plan.ts';
import { type Contributed, hasToken, type Observed } from '../observed.ts';
import { relabelSteps, serviceSteps } from '../services.ts';

/** Also before the bootstrap is complete: members need their DNS names. */
export const correctServices = (o: Observed): Contributed =>
  independent('a Service is missing or was changed', hasToken(o) ? serviceSteps(o) : []);

export const relabel = (o: Observed): Contributed => independent('additionalMetadata changed', relabelSteps(o));
