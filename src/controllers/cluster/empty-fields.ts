/**
 * Empty lists and maps, which the types of the earlier operator drop from the EtcdMembers that it writes: a spec with one would never
 * match its members. Only these: an empty selector, for example, selects everything, and an absent one nothing.
 */
import { isObject, sameJson } from '../../lib/merge-patch.ts';

/** Maps, as opposed to objects with fields of their own. */
const MAPS = ['labels', 'annotations', 'matchLabels', 'nodeSelector'];

const isEmpty = (value: unknown): boolean =>
  Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(
    ([key, each]) => !(isEmpty(each) && (Array.isArray(each) || MAPS.includes(key))),
  );
  return Object.fromEntries(kept.map(([key, each]) => [key, withoutEmpty(each)]));
}

/** A whole field of the template: without content it asks for nothing. */
const contentOf = (field: unknown): unknown => {
  const content = withoutEmpty(field);
  return isEmpty(content) ? undefined : content;
};

/** Whether the types of the earlier operator write the same for both. */
export const sameContent = (a: unknown, b: unknown): boolean => sameJson(contentOf(a), contentOf(b));
