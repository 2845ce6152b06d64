/** Who reaches the Pods of a cluster over the network. */
import Type from 'typebox';
import { cel } from './cel.ts';
import { optionalList, optionalObject } from './optional.ts';
import { LabelSelectorSchema } from './selectors.ts';

const PEERS = 32;
const BLOCKS = 32;

const BYTE = '(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const IPV4 = `(${BYTE}[.]){3}${BYTE}/(3[0-2]|[12]?[0-9])`;
/** Not all that matches is an address: the operator leaves out what is none, because CEL has no networks in Kubernetes 1.30. */
const IPV6 = '[0-9a-fA-F:]*:[0-9a-fA-F:]*/(12[0-8]|1[01][0-9]|[1-9]?[0-9])';

const cidr = (description: string) =>
  Type.String({ minLength: 1, maxLength: 64, pattern: `^(${IPV4}|${IPV6})$`, description });

/** As in a NetworkPolicy. */
const PeerSchema = Type.Object(
  {
    podSelector: Type.Optional(LabelSelectorSchema),
    namespaceSelector: Type.Optional(LabelSelectorSchema),
    ipBlock: optionalObject('Addresses outside of the Pod network.', {
      cidr: cidr('Such as 192.0.2.0/24.'),
      except: optionalList(cidr('A smaller network inside of cidr, and not part of it.'), BLOCKS),
    }),
  },
  cel({
    rule: 'has(self.ipBlock) ? !has(self.podSelector) && !has(self.namespaceSelector) : has(self.podSelector) || has(self.namespaceSelector)',
    message: 'set podSelector, namespaceSelector or both; or ipBlock alone',
  }),
);

export const networkPolicy = optionalObject(
  'NetworkPolicies for the Pods of this cluster, and the agents that take its snapshots. Port 2380 is reached by members; 2379 by the operator, agents and clients; 2381, with the metrics, by monitoring. Absent: none; everything in the Pod network reaches every port. Needs a CNI that enforces NetworkPolicies.',
  {
    clients: optionalList(PeerSchema, PEERS),
    monitoring: optionalList(PeerSchema, PEERS),
  },
);
