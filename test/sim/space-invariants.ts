/** What the operator does about a database that has reached its quota. */
import { hexId } from '../../src/etcd/ids.ts';
import type { AlarmEntry } from '../../src/etcd/maintenance.ts';
import { outgrownLately } from './faults/space.ts';
import type { OnChange } from './invariants.ts';
import { sizeOf } from './model/etcd-node.ts';
import { groupOf } from './world/facts.ts';

/** Without autoRemedy no history is removed, and with it only as much as it says. */
const compactsAsAsked: OnChange = ({ world }, { method, args }) => {
  const { spec } = world.cluster ?? {};
  const group = groupOf(world);
  if (method !== 'compact' || !spec || !group) return undefined;
  const { enabled, keepRevisions = 0 } = spec.maintenance?.autoRemedy ?? {};
  if (enabled !== true) return 'the history was compacted, and autoRemedy is off';
  const upTo = args[0] as bigint;
  return upTo > group.state.keys.revision - BigInt(keepRevisions)
    ? `the history was compacted up to ${upTo} of ${group.state.keys.revision}, and ${keepRevisions} revisions are to be kept`
    : undefined;
};

/** etcd would raise the alarm again with the next write, and clients would read that it is solved. */
const disarmsWithRoom: OnChange = ({ world }, { method, args }) => {
  const entry = args[0] as AlarmEntry | undefined;
  const group = groupOf(world);
  if (method !== 'disarm' || entry?.alarm !== 'noSpace' || !group?.members.has(entry.memberId)) return undefined;
  if (outgrownLately(world)) return undefined; // after the operator had asked
  const full = world.etcd.nodes.find(({ running, disk, options }) => {
    return running && disk?.group === group && sizeOf(disk) >= (options.quotaBytes ?? Number.POSITIVE_INFINITY);
  });
  return full && `NOSPACE of ${hexId(entry.memberId)} is disarmed, and ${full.name} is full`;
};

const countRemedy: OnChange = ({ world }, { method }, answer) => {
  if (answer?.ok && (method === 'compact' || method === 'disarm')) world.ground.count(`etcd: ${method}`);
  return undefined;
};

export const SPACE = {
  beforeChange: { compactsAsAsked, disarmsWithRoom },
  afterChange: { countRemedy },
};
