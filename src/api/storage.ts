/** Where a member keeps its data: shared by what users ask for, what is latched, and what a member got. */
import Type, { type Static } from 'typebox';
import { cel } from './cel.ts';
import type { DeepReadonly } from './meta.ts';
import { quantity, SUBDOMAIN_PATTERN } from './text.ts';

export const MEDIUM = ['', 'Memory'] as const;
export const DEFAULT_SIZE = '1Gi';

const size = { default: DEFAULT_SIZE, description: 'How large the volume of each member is.' };
const medium = {
  type: 'string',
  default: '',
  description: 'Empty: a PersistentVolumeClaim. Memory: a tmpfs, gone with its Pod.',
};
const storageClassName = {
  description: 'The class of the volume. Absent: the default class. Empty: no dynamic provisioning.',
};

/** As a user writes it: with the rules about what may change. */
export const StorageSchema = Type.Object(
  {
    size: Type.Optional(
      quantity({
        ...size,
        ...cel(
          {
            rule: "isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",
            message: 'storage.size must be greater than zero, such as 1Gi',
            messageExpression: "'storage.size is ' + string(self) + ': it must be greater than zero, such as 1Gi'",
          },
          {
            rule: '!quantity(string(self)).isLessThan(quantity(string(oldSelf)))',
            message: 'storage.size cannot shrink: Kubernetes volumes only grow',
            messageExpression:
              "'storage.size cannot shrink from ' + string(oldSelf) + ' to ' + string(self) + ': Kubernetes volumes only grow'",
          },
        ),
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
            message:
              'storage.storageClassName is not a name that a StorageClass can have: see kubectl get storageclass',
            messageExpression:
              "'storage.storageClassName ' + self + ' is not a name that a StorageClass can have: see kubectl get storageclass'",
          },
          {
            rule: 'self == oldSelf',
            message: 'storage.storageClassName cannot change: volumes keep their class',
            messageExpression:
              "'storage.storageClassName cannot change from ' + oldSelf + ' to ' + self + ': volumes keep their class'",
          },
        ),
      }),
    ),
  },
  {
    default: { size: DEFAULT_SIZE, medium: '' },
    description: 'Where each member keeps its data.',
    ...cel({
      rule: 'has(self.storageClassName) == has(oldSelf.storageClassName)',
      message: 'storage.storageClassName cannot be added or removed: volumes keep their class',
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

export type Storage = DeepReadonly<Static<typeof StorageSchema>>;
export type StorageTarget = DeepReadonly<Static<typeof StorageTargetSchema>>;

export const DeletionPolicySchema = Type.Enum(['Delete', 'Retain'], {
  type: 'string',
  description:
    'What becomes of the volumes when the cluster is deleted. Absent or Delete: they go with it. Retain: they stay, with the label etcd-operator.cozystack.io/quarantine; those of members that were replaced or removed stay for a week.',
});
