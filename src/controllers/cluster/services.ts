/** The steps that create or correct the two Services of a cluster, and the labels of what users see beside its members. */
import type { ReadHolding } from '../../domain/unread.ts';
import type { Service } from '../../gen/kube.ts';
import { refTo, type Step } from '../../runtime/plan.ts';
import { clientService, hasDrifted, headlessService, metadataPatch, ownedFields } from './build.ts';
import type { Observed } from './observed.ts';

const stepFor = (built: Service, holding: ReadHolding<Service>): readonly Step[] => {
  if (holding.is === 'absent') return [{ do: 'create', object: built }];
  if (holding.is !== 'ours' || !hasDrifted(holding.object, built)) return [];
  return [{ do: 'apply', to: refTo('Service', holding.object), fields: ownedFields(built) }];
};

/** No step for a foreign Service, or one that could not be read. */
export const serviceSteps = (o: Observed): readonly Step[] => [
  ...stepFor(headlessService(o.cluster), o.services.headless),
  ...stepFor(clientService(o.cluster), o.services.client),
];

/** Patches labels and annotations of Services, the PodDisruptionBudget and NetworkPolicies; those of members change with the members. */
export function relabelSteps({ cluster, services, pdb, network }: Observed): readonly Step[] {
  const [before, wanted] = [cluster.status?.observed?.additionalMetadata, cluster.spec.additionalMetadata];
  const policies = network ? [network.held.members, network.held.agents] : [];
  return [services.headless, services.client, pdb, ...policies].flatMap((holding): readonly Step[] => {
    const fields = holding.is === 'ours' ? metadataPatch(holding.object, before, wanted) : undefined;
    return holding.is === 'ours' && fields
      ? [{ do: 'patch', to: refTo(holding.object.kind ?? '', holding.object), fields }]
      : [];
  });
}
