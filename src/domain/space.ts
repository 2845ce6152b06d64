/** How much room a database has, and what a user can do when it has none. */
import { roomFor } from '../api/defaults.ts';
import { mebibytes } from './defragmentation.ts';

const GI = 2 ** 30;
const MI = 2 ** 20;
/** etcd suggests no more. */
const MAX_QUOTA = 8 * GI;

/** A quota with which the keys take half of the database, in whole Gi, or Mi if it is small; `undefined` beyond what etcd suggests. */
export function proposedQuota(inUse: number, quota: number): number | undefined {
  const step = quota < GI ? 64 * MI : GI;
  const wanted = Math.max(Math.ceil((2 * inUse) / step), Math.floor(quota / step) + 1) * step;
  const proposed = Math.min(wanted, MAX_QUOTA);
  return proposed > quota ? proposed : undefined;
}

const rounded = (bytes: number): string => (bytes % GI === 0 ? `${bytes / GI}Gi` : `${Math.ceil(bytes / MI)}Mi`);

/** What helps when compaction does not: fewer keys, or a larger database. */
export function growthRemedy(inUse: number, quota: number, volume: number): string {
  const proposed = proposedQuota(inUse, quota);
  if (proposed === undefined)
    return `delete keys: ${mebibytes(quota)} is as much as etcd is made for. Consider to divide the data among several clusters`;
  const needed = roomFor(proposed);
  const size = volume < needed ? `, and storage.size to at least ${rounded(needed)}` : '';
  return `delete keys, or raise options.quotaBackendBytes to ${proposed} (${rounded(proposed)})${size}`;
}

export interface Named {
  readonly namespace: string;
  readonly name: string;
}

/** To be pasted. `kubectl etcd` knows the certificates and the password of the cluster. */
export const kubectlEtcd = (command: string, { namespace, name }: Named): string =>
  `kubectl etcd ${command} ${name} -n ${namespace}`;

export const remedyCommands = (cluster: Named): string =>
  [kubectlEtcd('compact', cluster), kubectlEtcd('defrag', cluster), kubectlEtcd('alarm disarm', cluster)].join(' && ');

/** For users without the plugin. */
export const enableRemedy = ({ namespace, name }: Named): string =>
  `kubectl patch etcdcluster ${name} -n ${namespace} --type=merge -p '{"spec":{"maintenance":{"autoRemedy":{"enabled":true}}}}'`;
