/** Rows of upkeep about the two Services, and the labels of what users see beside the members. */
import { type Contributed, hasToken, type Observed } from '../observed.ts';
import { relabelSteps, serviceSteps } from '../services.ts';

/** Also before the bootstrap is complete: members need their DNS names. */
export const correctServices = (o: Observed): Contributed => {
  const steps = hasToken(o) ? serviceSteps(o) : [];
  if (steps.length === 0) return undefined;
  return { message: 'a Service is missing or was changed', sequences: steps.map((step) => [step]) };
};

export const relabel = (o: Observed): Contributed => {
  const steps = relabelSteps(o);
  return steps.length === 0
    ? undefined
    : { message: 'additionalMetadata changed', sequences: steps.map((step) => [step]) };
};
