/** The state of a cluster's objects without what differs between two successful runs. Pure. */
import { memberName, ROTATE_CA_ANNOTATION } from '../../src/api/names.ts';
import type { KubeObject } from '../../src/kube/object.ts';

/** No run comes near this many members of one cluster. */
export const MAX_NAMES = 30;

/** Set by the server or the clock, or dependent on which member leads and which ones existed when a member joined. */
const VOLATILE: readonly string[] = [
  'uid',
  'resourceVersion',
  'generation',
  'observedGeneration',
  'creationTimestamp',
  'managedFields',
  'lastTransitionTime',
  'progressDeadline',
  'startTime',
  'startedAt',
  'finishedAt',
  'since',
  'clusterIP',
  'clusterIPs',
  'podIP',
  'podIPs',
  'nodeName',
  'databaseSize',
  'membersNamed',
  'leader',
  'initialCluster',
  'containerStatuses',
  'last',
  'at',
  'etcd-operator.cozystack.io/written-at',
  'etcd-operator.cozystack.io/quarantined-at',
  'until',
  // What the user has written, which is different in each workload of one cluster.
  ROTATE_CA_ANNOTATION,
  'commanded',
  'progressDeadlineSeconds',
];
const ROLES_THAT_CHANGE: Readonly<Record<string, string>> = { leader: 'voter', follower: 'voter' };
const JOIN_LIST = /--initial-cluster=[^"]*/g;
const MEMBER = /<member \d>/g;
const ID = /\b[0-9a-f]{16}\b/g;
const DIGEST = /\b[0-9a-f]{64}\b|(?<=-trust-)[0-9a-f]{10}\b/g;
/** All certificates expire within seconds. */
const EXPIRY = /first certificate to expire is in Secret \S+, on [0-9-]+T[0-9:]+Z/g;
const UID = /\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;

export function canonical(objects: readonly KubeObject[], cluster: KubeObject, namespace: string): readonly string[] {
  const rename = renamer(objects, cluster);
  const texts = objects.map((object) => {
    const text = rename(JSON.stringify(object)).replaceAll(namespace, '<namespace>');
    const plain = [JOIN_LIST, EXPIRY].reduce((now, volatile) => now.replace(volatile, ''), text);
    const named = plain.replace(UID, '<uid>').replace(ID, '<id>').replace(DIGEST, '<digest>');
    return JSON.stringify(stripped(JSON.parse(named)), undefined, 1);
  });
  return texts.sort();
}

/** Members by age: the first of those that still exist, the second, … The name of a deleted member is only that. */
function renamer(objects: readonly KubeObject[], cluster: KubeObject): (text: string) => string {
  const { name = '', uid = '' } = cluster.metadata;
  const present = new Set(objects.filter((o) => o.kind === 'EtcdMember').map((o) => o.metadata.name));
  const named = Array.from({ length: MAX_NAMES }, (_, i) => memberName(name, uid, i + 1));
  const alive = named.filter((each) => present.has(each));
  return (text) =>
    named.reduce((now, each) => {
      const place = alive.indexOf(each);
      return now.replaceAll(each, place < 0 ? '<former>' : `<member ${place + 1}>`);
    }, text);
}

/** Messages list members by their names, which are random. */
function inOrder(text: string): string {
  const found = text.match(MEMBER) ?? [];
  const sorted = [...found].sort();
  return text.replace(MEMBER, () => sorted.shift() ?? '');
}

function stripped(value: unknown): unknown {
  if (typeof value === 'string') return inOrder(value);
  if (Array.isArray(value)) return value.map(stripped).sort((a, b) => sortKey(a).localeCompare(sortKey(b)));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value)
    .filter(([key]) => !VOLATILE.includes(key))
    .map(([key, inner]) => [key, field(key, inner)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => a.localeCompare(b)));
}

function field(key: string, value: unknown): unknown {
  if (key === 'role') return ROLES_THAT_CHANGE[String(value)] ?? value;
  if (key === 'data') return Object.keys(Object(value)).sort(); // of a Secret: keys are random
  return stripped(value);
}

/** Lists of named items have no order; lists of strings (a command) keep theirs. */
const sortKey = (value: unknown): string => {
  const { name, type } = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  return typeof name === 'string' ? name : typeof type === 'string' ? type : '';
};

export const isSame = (a: readonly string[], b: readonly string[]): boolean => a.join('\n') === b.join('\n');

/** What is in one and not in the other, in a few lines for a reader. */
export function difference(expected: readonly string[], seen: readonly string[]): string {
  const lines = (texts: readonly string[]): readonly string[] =>
    texts.flatMap((text) => {
      const { kind, metadata } = JSON.parse(text) as KubeObject;
      return text.split('\n').map((line) => `${kind} ${metadata.name}: ${line.trim().replace(/,$/, '')}`);
    });
  const [before, after] = [lines(expected), lines(seen)];
  const missing = before.filter((line) => !after.includes(line)).map((line) => `- ${line}`);
  const added = after.filter((line) => !before.includes(line)).map((line) => `+ ${line}`);
  return [...missing, ...added].slice(0, 40).join('\n');
}
