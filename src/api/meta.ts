/** The parts that all objects of our own kinds have. */
import type { Static, TSchema } from 'typebox';
import type { ObjectMeta, OwnerReference } from '../gen/kube.ts';
import type { API_VERSION } from './names.ts';

export type { ObjectMeta, OwnerReference };

/** Makes every part of an object read-only: objects in the cache are shared and must not be changed in place. */
export type DeepReadonly<T> = T extends readonly (infer E)[]
  ? readonly DeepReadonly<E>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

/** What a schema accepts. */
export type Accepted<Schema extends TSchema> = DeepReadonly<Static<Schema>>;

export interface CustomObject<Kind extends string, Spec extends TSchema, Status extends TSchema> {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: Kind;
  readonly metadata: ObjectMeta;
  readonly spec: Accepted<Spec>;
  readonly status?: Accepted<Status>;
}
