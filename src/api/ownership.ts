/** Whose an object is. An object of the right name that is not ours is never used and never changed. */
import type { ObjectMeta, OwnerReference } from './meta.ts';

interface Owned {
  readonly metadata: ObjectMeta;
}

/** What is known about an object that we want by name. */
export type Holding<T> =
  | { readonly is: 'absent' }
  | { readonly is: 'ours'; readonly object: T }
  | { readonly is: 'foreign'; readonly owner: string };

export const controllerOf = (object: Owned): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find((o) => o.controller === true);

const describe = (object: Owned): string => {
  const owner = controllerOf(object);
  if (!owner) return 'nobody: it was not made by this operator';
  const going = object.metadata.deletionTimestamp === undefined ? '' : ', and is being deleted';
  return `${owner.kind} ${owner.name} (uid ${owner.uid})${going}`;
};

/** Sorts an object by its controller: ours only if that is exactly the object with this uid. */
export function holding<T extends Owned>(object: T | undefined, uid: string): Holding<T> {
  if (object === undefined) return { is: 'absent' };
  if (controllerOf(object)?.uid === uid) return { is: 'ours', object };
  return { is: 'foreign', owner: describe(object) };
}
