/** Rules about the two Services. */
import type { EtcdClusterStatus } from '../../../api/etcd-cluster-status.ts';
import { type Answer, type Step, seen } from '../../../runtime/plan.ts';
import { metadataPatch } from '../build.ts';
import { isRefused, type Observed } from '../observed.ts';
import { serviceSteps } from '../services.ts';

export const repairServices = (o: Observed): Answer<EtcdClusterStatus> | undefined =>
  isRefused(o) ? undefined : correctServices(o);

export const correctServices = (o: Observed): Answer<EtcdClusterStatus> | undefined => {
  const steps = serviceSteps(o);
  return steps.length === 0 ? undefined : { why: 'a Service is missing or was changed', steps };
};

/** Labels and annotations follow an edit at once; the ones that members carry come with the members. */
export const relabel = (o: Observed): Answer<EtcdClusterStatus> | undefined => {
  const [before, wanted] = [o.cluster.status?.observed?.additionalMetadata, o.cluster.spec.additionalMetadata];
  const steps = [o.services.headless, o.services.client, o.budget].flatMap((holding): readonly Step[] => {
    const fields = holding.is === 'ours' ? metadataPatch(holding.object, before, wanted) : undefined;
    return holding.is === 'ours' && fields
      ? [{ do: 'patch', to: seen(holding.object.kind ?? '', holding.object), fields }]
      : [];
  });
  return steps.length === 0 ? undefined : { why: 'additionalMetadata was edited', steps };
};
