/** The start of a member without data: it bootstraps a cluster or joins an existing one. */
import type { MemberEntry } from '../../../src/etcd/client.ts';
import { clusterIdOf, Group, memberIdOf } from './etcd-group.ts';
import { type ModelNode, newDisk } from './etcd-node.ts';
import { trustEachOther } from './etcd-tls.ts';
import { mayStart } from './etcd-version.ts';

export interface ModelJoin {
  readonly initialCluster: string;
  readonly state: 'new' | 'existing';
  readonly token?: string;
}

/** All nodes and clusters of the model. */
interface Scene {
  readonly nodes: readonly ModelNode[];
  readonly groups: Map<bigint, Group>;
  readonly now: number;
}

type Listed = readonly (readonly [name: string, url: string])[];

const DEFAULT_TOKEN = 'etcd-cluster';
const LOST = 'tocommit is out of range. Was the raft log corrupted, truncated, or lost?';
const UNMATCHED = 'error validating peerURLs: PeerURLs: no match found for existing member';

/** Returns the error that etcd ends with, or undefined when the node has a disk now. */
export function bootstrapOrJoin(scene: Scene, node: ModelNode, join: ModelJoin): string | undefined {
  const { initialCluster, state, token = DEFAULT_TOKEN } = join;
  const listed = listedIn(initialCluster);
  if (!listed.some(([name, url]) => name === node.name && url === node.peerURL))
    return `couldn't find local name "${node.name}" in the initial cluster configuration`;
  return state === 'new' ? bootstrap(scene, node, listed, token) : takePlace(scene, node, listed);
}

const listedIn = (initialCluster: string): Listed =>
  initialCluster.split(',').map((pair) => pair.split('=') as [string, string]);

/** A restored data directory of one of the listed members. No peer is contacted, and no previous cluster is known. */
export function restored(
  scene: Scene,
  peerURL: string,
  join: ModelJoin,
): { readonly group: Group; readonly id: bigint } {
  const { founders, clusterId } = foundersOf(listedIn(join.initialCluster), join.token ?? DEFAULT_TOKEN);
  const id = memberIdOf([peerURL], join.token ?? DEFAULT_TOKEN);
  const group = new Group(clusterId, founders, scene.now);
  scene.groups.set(clusterId, group);
  group.bootstrapped.add(id);
  return { group, id };
}

function foundersOf(listed: Listed, token: string) {
  const founders = listed.map(([name, url]) => anEntry(memberIdOf([url], token), name, url));
  return { founders, clusterId: clusterIdOf(founders.map((entry) => entry.id)) };
}

/** The other listed members that can be reached. */
const peersOf = ({ nodes }: Scene, node: ModelNode, listed: Listed): readonly ModelNode[] =>
  nodes.filter(
    (each) =>
      each !== node &&
      each.running &&
      !each.isolated &&
      each.disk &&
      trustEachOther(each, node) &&
      listed.some(([, url]) => url === each.peerURL),
  );

/** Bootstraps all listed members at once. Ids derive from the list and the token alone: an emptied seed gets the same ones. */
function bootstrap(scene: Scene, node: ModelNode, listed: Listed, token: string): string | undefined {
  const { founders, clusterId } = foundersOf(listed, token);
  const id = memberIdOf([node.peerURL], token);
  const known = peersOf(scene, node, listed).some(
    ({ disk }) => (disk?.group.members.get(id)?.clientURLs.length ?? 0) > 0,
  );
  if (known) return `member ${id.toString(16)} has already been bootstrapped`;
  const group = theSame(scene, node, listed, clusterId, id) ?? new Group(clusterId, founders, scene.now);
  if (isMissed(group, id)) return LOST;
  scene.groups.set(clusterId, group);
  group.bootstrapped.add(id);
  node.disk = newDisk(group, id);
  return undefined;
}

/** The cluster of that id as far as it still exists: other listed members that wait, or the members that it has grown to. */
function theSame(
  { groups, nodes }: Scene,
  node: ModelNode,
  listed: Listed,
  clusterId: bigint,
  id: bigint,
): Group | undefined {
  const group = groups.get(clusterId);
  if (!group?.bootstrapped.has(id)) return group;
  const others = nodes.filter((each) => each !== node && each.disk?.group === group);
  // A seed without a peer that responds bootstraps a cluster of its own, because no peer can report the existing one.
  return others.some(({ running }) => running || listed.length > 1) ? group : undefined;
}

function takePlace(scene: Scene, node: ModelNode, listed: Listed): string | undefined {
  const urls = listed.map(([, url]) => url);
  const [peer] = peersOf(scene, node, listed);
  if (!peer?.disk) return 'cannot fetch cluster info from peer urls';
  const { group } = peer.disk;
  const members = [...group.members.values()];
  if (members.length !== urls.length) return 'error validating peerURLs: member count is unequal';
  if (members.some(({ peerURLs }) => !peerURLs.some((url) => urls.includes(url)))) return UNMATCHED;
  const own = members.find(({ peerURLs }) => peerURLs.includes(node.peerURL));
  if (!own) return UNMATCHED;
  const tooOld = mayStart(node.version, group.state);
  if (tooOld !== undefined) return tooOld;
  if (isMissed(group, own.id)) return LOST;
  group.bootstrapped.add(own.id);
  node.disk = newDisk(group, own.id);
  return undefined;
}

/**
 * The leader relies on the log that this member had: without it, raft panics rather than lose a committed entry. A leader
 * that has not seen it yet, or is yet to be elected, does not notice.
 */
const isMissed = (group: Group, id: bigint): boolean => group.leader !== undefined && group.matches.has(id);

const anEntry = (id: bigint, name: string, url: string): MemberEntry => ({
  id,
  name,
  peerURLs: [url],
  clientURLs: [],
  isLearner: false,
});
