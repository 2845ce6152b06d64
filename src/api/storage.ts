/** Where a member keeps its data: shared by what users ask for, what is latched, and what a member got. */
import Type, { type Static } from 'typebox';
import { cel } from './crd.ts';
import type { DeepReadonly } from './meta.ts';

const QUANTITY = String.raw`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`;

/** Numbers are accepted too, and quantity() takes only text: hence string(self) in every rule. */
const quantity = (options: Readonly<Record<string, unknown>>) =>
  Type.Unsafe<string | number>({
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    'x-kubernetes-int-or-string': true,
    pattern: QUANTITY,
    ...options,
  });

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
          },
          {
            rule: '!quantity(string(self)).isLessThan(quantity(string(oldSelf)))',
            message: 'storage.size cannot shrink: Kubernetes volumes only grow',
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
        ...cel({
          rule: 'self == oldSelf',
          message: 'storage.storageClassName cannot change: volumes keep their class',
        }),
      }),
    ),
  },
  {
    default: {},
    description: 'Where each member keeps its data.',
    ...cel({
      rule: 'has(self.storageClassName) == has(oldSelf.storageClassName)',
      message: 'storage.storageClassName cannot be added or removed: volumes keep their class',
    }),
  },
);

/** As the operator latches and copies it: complete, and not validated again. */
export const StorageTargetSchema = Type.Object({
  size: quantity({ description: size.description }),
  medium: Type.Enum([...MEDIUM], { type: 'string', description: medium.description }),
  storageClassName: Type.Optional(Type.String(storageClassName)),
});

export type Storage = DeepReadonly<Static<typeof StorageSchema>>;
export type StorageTarget = DeepReadonly<Static<typeof StorageTargetSchema>>;
