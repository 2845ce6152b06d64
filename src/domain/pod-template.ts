/**
 * What the Pod of a member was built from: a digest per field, written into an annotation of the Pod. The live Pod is never compared
 * with the spec: admission webhooks, LimitRanges and defaults of Kubernetes change it, and members would be restarted for ever.
 */
import { createHash } from 'node:crypto';
import type { EtcdMember } from '../api/etcd-member.ts';
import { RESTARTED_AT_ANNOTATION, TEMPLATE_ANNOTATION } from '../api/names.ts';
import { TEMPLATE_FIELDS, type Template } from '../api/template.ts';
import { isObject } from '../lib/merge-patch.ts';

/** Patched in place, or no part of the Pod: a change of these restarts no member. */
const WITHOUT_RESTART: readonly (keyof Template)[] = ['storage', 'additionalMetadata'];

/** The fields of the template that reach a running member only with another Pod. */
export const RESTART_FIELDS: readonly (keyof Template)[] = TEMPLATE_FIELDS.filter(
  (field) => !WITHOUT_RESTART.includes(field),
);

/** The repository that the administrator has configured, where the spec names none. */
export const IMAGE_REPOSITORY = 'imageRepository';
const RESTARTED_AT = 'restartedAt';

/** Digests by field; a field that is not set has none. */
export type Stamp = Readonly<Record<string, string>>;

const sorted = (_key: string, value: unknown): unknown =>
  isObject(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value;

/** The API server returns the keys of an object in another order than they were written in. */
const digestOf = (value: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(value, sorted) ?? '')
    .digest('hex')
    .slice(0, 12);

const entry = (field: string, value: unknown): readonly (readonly [string, string])[] =>
  value === undefined ? [] : [[field, digestOf(value)]];

const requestOf = (member: EtcdMember): string | undefined => member.metadata.annotations?.[RESTARTED_AT_ANNOTATION];

/** Without `repository`, of a Pod whose image is not known to the operator that stamps it. */
export const stampOf = (member: EtcdMember, repository?: string): Stamp =>
  Object.fromEntries([
    ...RESTART_FIELDS.flatMap((field) => entry(field, member.spec[field])),
    ...(member.spec.image?.repository === undefined ? entry(IMAGE_REPOSITORY, repository) : []),
    ...entry(RESTARTED_AT, requestOf(member)),
  ]);

/** Of all fields that reach a running member only with another Pod. */
export const digestOfTemplate = (template: Template): string =>
  digestOf(Object.fromEntries(RESTART_FIELDS.map((field) => [field, template[field]])));

type Annotations = Readonly<Record<string, string>>;

export const stampAnnotation = (stamp: Stamp): Annotations => ({ [TEMPLATE_ANNOTATION]: JSON.stringify(stamp) });

/** `undefined` for a Pod of an earlier operator, and for an annotation that was edited. */
export function stampIn(annotations: Annotations = {}): Stamp | undefined {
  try {
    const stamp: unknown = JSON.parse(annotations[TEMPLATE_ANNOTATION] ?? '');
    return isObject(stamp) && Object.values(stamp).every((digest) => typeof digest === 'string')
      ? (stamp as Stamp)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The fields of its EtcdMember that the Pod was not built from. */
export const unstampedFields = (stamp: Stamp, member: EtcdMember): readonly (keyof Template)[] => {
  const current = stampOf(member);
  return RESTART_FIELDS.filter((field) => stamp[field] !== current[field]);
};

/** The Pod was built before a restart of its member was requested. */
export const isBeforeRestart = (stamp: Stamp, member: EtcdMember): boolean =>
  stamp[RESTARTED_AT] !== stampOf(member)[RESTARTED_AT];

/** The administrator has configured another repository since the Pod was built. */
export const hasOtherRepository = (stamp: Stamp, member: EtcdMember, repository: string): boolean => {
  const recorded = stamp[IMAGE_REPOSITORY];
  return recorded !== undefined && recorded !== (stampOf(member, repository)[IMAGE_REPOSITORY] ?? recorded);
};
