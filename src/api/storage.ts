/** The storage of a member: shared by the spec of the cluster, the latched target and the spec of the member. */
import Type from 'typebox';
import { cel } from './cel.ts';
import type { Accepted } from './meta.ts';
import { aboveZero, quantity, SUBDOMAIN_PATTERN } from './text.ts';

const MEDIUM = ['', 'Memory'] as const;
export const DEFAULT_SIZE = '1Gi';

const size = { default: DEFAULT_SIZE, description: 'Size of the volume of each member.' };
const medium = {
  type: 'string',
  default: '',
  description: 'Empty: a PersistentVolumeClaim. Memory: a tmpfs, whose data is lost when the Pod is deleted.',
};
const storageClassName = {
  description: 'The StorageClass of the volumes. Absent: the default StorageClass. Empty: no dynamic provisioning.',
};

/** As users write it: with the rules about what may change. */
export const StorageSchema = Type.Object(
  {
    size: Type.Optional(
      quantity({
        ...size,
        ...cel(aboveZero('storage.size', '1Gi'), {
          rule: '!quantity(string(self)).isLessThan(quantity(string(oldSelf)))',
          message: 'storage.size cannot be reduced: Kubernetes volumes can only grow',
          messageExpression:
            "'storage.size cannot be reduced from ' + string(oldSelf) + ' to ' + string(self) + ': Kubernetes volumes can only grow'",
        }),
      }),
    ),
    medium: Type.Optional(
      Type.Enum([...MEDIUM], {
        ...medium,
        ...cel({ rule: 'self == oldSelf', message: 'storage.medium cannot change: members would lose their data' }),
      }),
    ),
    storageClassName: Type.Optional(
      Type.String({
        ...storageClassName,
        ...cel(
          {
            rule: `self == '' || (size(self) <= 253 && self.matches('${SUBDOMAIN_PATTERN}'))`,
            message: 'storage.storageClassName is not a valid name of a StorageClass: see kubectl get storageclass',
            messageExpression:
              "'storage.storageClassName ' + self + ' is not a valid name of a StorageClass: see kubectl get storageclass'",
          },
          {
            rule: 'self == oldSelf',
            message: 'storage.storageClassName cannot change: the StorageClass of a volume is immutable',
            messageExpression:
              "'storage.storageClassName cannot change from ' + oldSelf + ' to ' + self + ': the StorageClass of a volume is immutable'",
          },
        ),
      }),
    ),
  },
  {
    default: { size: DEFAULT_SIZE, medium: '' },
    description: 'The storage of each member.',
    ...cel({
      rule: 'has(self.storageClassName) == has(oldSelf.storageClassName)',
      message: 'storage.storageClassName cannot be added or removed: the StorageClass of a volume is immutable',
      fieldPath: '.storageClassName',
    }),
  },
);

/** As the operator latches and copies it: complete, and not validated again. */
export const StorageTargetSchema = Type.Object({
  size: quantity(size),
  medium: Type.Enum([...MEDIUM], medium),
  storageClassName: Type.Optional(Type.String(storageClassName)),
});

export type Storage = Accepted<typeof StorageSchema>;

export type DeletionPolicy = 'Delete' | 'Retain';
export const DeletionPolicySchema = Type.Enum(['Delete', 'Retain'], {
  type: 'string',
  description:
    'What happens to the PVCs when the cluster is deleted. Absent or Delete: they are deleted with it. Retain: they are kept, with the label etcd-operator.cozystack.io/quarantine; those of members that were replaced or removed are kept for a week.',
});
