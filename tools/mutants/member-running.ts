/** Faults in the rules of a member that has, or is to have, a volume and a Pod. */
import { faults, type Mutant } from './mutant.ts';

export const memberRunning: readonly Mutant[] = faults('src/member/rules/running.ts', [
  [
    'a volume that is to stay and has an owner',
    'if (owned !== retains(o)) return undefined;',
    'if (owned === retains(o)) return undefined;',
  ],
  [
    'a volume that is going and is tied anew',
    "o.volume.is !== 'ours' || o.volume.object.metadata.deletionTimestamp !== undefined) return undefined;\n  const owned",
    "o.volume.is !== 'ours') return undefined;\n  const owned",
  ],
  [
    'a volume that changed hands and is tied anew',
    "steps: [{ do: 'patch', to: seen('PersistentVolumeClaim', o.volume.object, 'this version'), fields: { metadata } }],",
    "steps: [{ do: 'patch', to: seen('PersistentVolumeClaim', o.volume.object), fields: { metadata } }],",
  ],
  ['a second, empty cluster from a seed that had joined', "  if (hasJoined(o)) return 'nothing';\n", ''],
  [
    'a member that begins a cluster instead of joining',
    "return o.member.spec.bootstrap === true ? 'cluster' : 'member';",
    "return 'cluster';",
  ],
  [
    'a seed whose next start may still begin a cluster, a member whose next start may still join',
    '    ...(mayBegin && { [begins.annotation]: begins.after }),\n',
    '',
  ],
  [
    'a seed that may never begin its cluster, a member that may never join',
    'voter && told !== undefined && told !== begins.after',
    'told !== undefined && told !== begins.after',
  ],
  [
    'an annotation on Pods of an earlier operator, and again in every pass',
    'told !== undefined && told !== begins.after',
    'told !== begins.after',
  ],
  [
    'members that start together and wait for each other to compare their data',
    'const { hasCompany, images } = o;',
    'const { images } = o;\n  const hasCompany = true;',
  ],
  ['a member that never compares its data again', "=== 'false';\n  const serves", "=== 'never';\n  const serves"],
  [
    'clients that are led to a member which is about to start again',
    ' && annotations[ASIDE_ANNOTATION] === undefined',
    '',
  ],
  [
    'a member that is told to compare its data before its container has started',
    "voter && o.etcd.is === 'answers' && annotations",
    'voter && annotations',
  ],
  [
    'clients at a member before there is a cluster',
    'isClusterFormed(o) && o.member.status?.isVoter === true',
    'o.member.status?.isVoter === true',
  ],
  ['a label that stays on a member that does not vote', '!== serves;\n', '!== serves && serves;\n'],
  [
    'a Pod of another member that is labelled',
    "{ do: 'patch', to: seen('Pod', o.pod.object), fields: { metadata } }",
    "{ do: 'patch', to: { ...seen('Pod', o.pod.object), uid: '' }, fields: { metadata } }",
  ],
  [
    'the Pod of a member that had joined, made again for its list',
    "o.pod.is !== 'ours' || hasJoined(o) || o.member.spec.bootstrap",
    "o.pod.is !== 'ours' || o.member.spec.bootstrap",
  ],
  [
    'a seed that is killed in its first start',
    ' || o.member.spec.bootstrap === true) return undefined;\n  const told',
    ') return undefined;\n  const told',
  ],
  ['a Pod that is made again although its list is right', 'told === list || flags.includes', 'flags.includes'],
  [
    'a Pod on a volume that is being deleted',
    "o.volume.is === 'ours' && o.volume.object.metadata.deletionTimestamp !== undefined",
    'false',
  ],
  ['a member in memory that gets a volume', 'const needsVolume = !inMemory(o) && ', 'const needsVolume = '],
  [
    'a running Pod that is taken away for an edit of the allowed images',
    "  if (o.pod.is === 'ours' && !isPodOver(o.pod.object)) return undefined;\n",
    '',
  ],
  [
    'a Pod that is made although the data is on a lost volume',
    'loss?.reason === EVIDENCE.dataLost',
    'loss?.reason === EVIDENCE.volumeFull',
  ],
  [
    'a Pod that is deleted again while it is going',
    "  return o.pod.object.metadata.deletionTimestamp === undefined\n    ? { why: 'parking",
    "  return o.pod.object.metadata.name !== ''\n    ? { why: 'parking",
  ],
  [
    'a finalizer that is added to an object that has changed',
    "seen('EtcdMember', o.member, 'this version'), fields }",
    "seen('EtcdMember', o.member), fields }",
  ],
  ["somebody else's finalizer that is lost", '[...present, MEMBER_FINALIZER]', '[MEMBER_FINALIZER]'],
]);
