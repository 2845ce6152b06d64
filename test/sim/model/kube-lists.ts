/** How an object consists of owned fields: which lists are sets or have keys, and which maps are atomic. */
import { isObject, type Json } from './kube-json.ts';

type Keys = Readonly<Record<string, readonly string[]>>;

/** By the name of the list. Without keys it is a set; lists that are not named here are atomic. */
const EVERY: Keys = { ownerReferences: ['uid'], finalizers: [] };
const BY_KIND: Readonly<Record<string, Keys>> = {
  Pod: {
    containers: ['name'],
    initContainers: ['name'],
    env: ['name'],
    ports: ['containerPort', 'protocol'],
    volumeMounts: ['mountPath'],
    volumeDevices: ['devicePath'],
    volumes: ['name'],
    imagePullSecrets: ['name'],
    topologySpreadConstraints: ['topologyKey', 'whenUnsatisfiable'],
    hostAliases: ['ip'],
    claims: ['name'],
  },
  Service: { ports: ['port', 'protocol'] },
  EtcdCluster: { claims: ['name'] },
  EtcdMember: { claims: ['name'] },
};
const DEFAULTS: Json = { protocol: 'TCP' };
const WHOLE = ['selector', 'nodeSelector', 'labelSelector', 'configMapKeyRef', 'secretKeyRef', 'fieldRef'];
const OWNED_METADATA = ['labels', 'annotations', 'finalizers', 'ownerReferences'];

const keysOf = (kind: string, name: string): readonly string[] | undefined => EVERY[name] ?? BY_KIND[kind]?.[name];

/** One step of the path to a field: a name, or the keys of a list item. */
export type Step = string | { readonly item: Json };
export interface Leaf {
  readonly way: readonly Step[];
  readonly value: unknown;
}
export type Leaves = ReadonlyMap<string, Leaf>;

const textOf = (way: readonly Step[]): string => JSON.stringify(way);

/** Every owned field of an object, without its identity and the fields that the server sets. */
export function leavesOf(kind: string, object: Json): Leaves {
  const found = new Map<string, Leaf>();
  const add = (way: readonly Step[], value: unknown): void => void found.set(textOf(way), { way, value });
  const walk = (value: unknown, way: readonly Step[], name: string): void => {
    const keys = Array.isArray(value) ? keysOf(kind, name) : undefined;
    if (keys) for (const each of value as readonly unknown[]) item(each, [...way, { item: keyOf(each, keys) }]);
    else if (isObject(value) && Object.keys(value).length > 0 && !WHOLE.includes(name))
      for (const [key, inner] of Object.entries(value)) walk(inner, [...way, key], key);
    else add(way, value);
  };
  const item = (value: unknown, way: readonly Step[]): void => {
    add(way, undefined); // the existence of the item itself
    if (isObject(value)) for (const [key, inner] of Object.entries(value)) walk(inner, [...way, key], key);
  };
  for (const [key, value] of Object.entries(object)) {
    if (key === 'apiVersion' || key === 'kind' || key === 'status') continue;
    if (key !== 'metadata') walk(value, [key], key);
    else
      for (const own of OWNED_METADATA)
        if ((value as Json)[own] !== undefined) walk((value as Json)[own], [key, own], own);
  }
  return found;
}

/** The item itself in a set, otherwise its keys. */
function keyOf(item: unknown, keys: readonly string[]): Json {
  if (keys.length === 0) return { value: item };
  return Object.fromEntries(keys.map((key) => [key, (item as Json)[key] ?? DEFAULTS[key]]));
}

const isItem =
  ({ item }: { readonly item: Json }) =>
  (candidate: unknown): boolean =>
    Object.entries(item).every(([key, value]) =>
      isObject(candidate) ? (candidate[key] ?? DEFAULTS[key]) === value : candidate === value,
    );

/** The value with one leaf set, or removed. */
export function withLeaf(target: unknown, [step, ...rest]: readonly Step[], value: unknown, remove: boolean): unknown {
  if (step === undefined) return value;
  if (typeof step === 'string') {
    const object: Record<string, unknown> = isObject(target) ? { ...target } : {};
    if (remove && (!(step in object) || rest.length === 0)) delete object[step];
    else object[step] = withLeaf(object[step], rest, value, remove);
    return object;
  }
  const list = Array.isArray(target) ? target : [];
  const at = list.findIndex(isItem(step));
  if (remove) {
    if (at < 0) return list;
    return rest.length === 0 ? list.toSpliced(at, 1) : list.with(at, withLeaf(list[at], rest, value, true));
  }
  const fresh = 'value' in step.item ? step.item['value'] : step.item;
  const item: unknown = at < 0 ? fresh : list[at];
  const next = rest.length === 0 ? item : withLeaf(item, rest, value, false);
  return at < 0 ? [...list, next] : list.with(at, next);
}
