/** The row of upkeep about the NetworkPolicies: created when the spec or the administrator asks for them, deleted when neither does. */
import { independent } from '../../../runtime/plan.ts';
import { policySteps } from '../network-policy.ts';
import { type Contributed, hasToken, type Observed } from '../observed.ts';

export const correctNetworkPolicies = (o: Observed): Contributed =>
  o.network && hasToken(o)
    ? independent(
        'a NetworkPolicy is missing, was changed, or is not wanted any more',
        policySteps(o.cluster, o.network),
      )
    : undefined;
