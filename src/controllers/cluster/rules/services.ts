/** Rules about the two Services. */
import { refTo, type Step } from '../../../runtime/plan.ts';
import { metadataPatch } from '../build.ts';
import { type Decided, isRefused, type Observed } from '../observed.ts';
import { serviceSteps } from '../services.ts';

export const repairServices = (o: Observed): Decided => (isRefused(o) ? undefined : correctServices(o));

export const correctServices = (o: Observed): Decided => {
  const steps = serviceSteps(o);
  return steps.length === 0 ? undefined : { message: 'a Service is missing or was changed', steps };
};

/** Patches labels and annotations of Services and the PodDisruptionBudget at once after an edit; those of members change with the members. */
export const relabel = (o: Observed): Decided => {
  const [before, wanted] = [o.cluster.status?.observed?.additionalMetadata, o.cluster.spec.additionalMetadata];
  const steps = [o.services.headless, o.services.client, o.pdb].flatMap((holding): readonly Step[] => {
    const fields = holding.is === 'ours' ? metadataPatch(holding.object, before, wanted) : undefined;
    return holding.is === 'ours' && fields
      ? [{ do: 'patch', to: refTo(holding.object.kind ?? '', holding.object), fields }]
      : [];
  });
  return steps.length === 0 ? undefined : { message: 'additionalMetadata changed', steps };
};
