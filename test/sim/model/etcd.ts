/**
 * A model of etcd for tests of the operator: processes with disks that remember, quorums, learners, elections, and the
 * refusals of the real one. Time passes only when it is told to. The contract suite holds it to the real servers.
 */
import type { Ask, MemberEntry } from '../../../src/etcd/client.ts';
import type { Answer, EtcdError } from '../../../src/etcd/errors.ts';
import { clusterIdOf, type Group, inOrder, memberIdOf, newGroup, type Peers, quorum, voters } from './etcd-group.ts';

export interface ModelJoin {
  readonly initialCluster: string;
  readonly state: 'new' | 'existing';
  readonly token?: string;
}

/** A data directory: what survives the process. */
interface Disk {
  readonly group: Group;
  readonly id: bigint;
  applied: number;
}

export interface ModelNode {
  readonly name: string;
  readonly endpoint: string;
  readonly peerURL: string;
  readonly maxLearners: number;
  disk: Disk | undefined;
  running: boolean;
  /** Cut off from clients and peers. */
  isolated: boolean;
  /** Does not receive its leader's log: a slow learner. */
  stalled: boolean;
  startedAt: number;
  reachableSince: number;
  lastWords: string;
}

export interface NodeOptions {
  readonly maxLearners?: number;
  /** Where clients and peers find it; by default addresses of its own. */
  readonly endpoint?: string;
  readonly peerURL?: string;
}

export const ELECTION_MS = 1_000;
const DEFAULT_TOKEN = 'etcd-cluster';

export class ModelEtcd {
  readonly nodes: ModelNode[] = [];
  readonly #groups = new Map<bigint, Group>();
  now = 0;

  node(name: string, options: NodeOptions = {}): ModelNode {
    const address = `10.0.0.${this.nodes.length + 1}`;
    const { maxLearners = 1, endpoint = `http://${address}:2379`, peerURL = `http://${address}:2380` } = options;
    const node: ModelNode = {
      name,
      endpoint,
      peerURL,
      maxLearners,
      disk: undefined,
      running: false,
      isolated: false,
      stalled: false,
      startedAt: 0,
      reachableSince: 0,
      lastWords: '',
    };
    this.nodes.push(node);
    return node;
  }

  /** Starts the process. One that cannot go on has ended when this returns, and `lastWords` says why. */
  start(node: ModelNode, join: ModelJoin): void {
    node.startedAt = node.reachableSince = this.now;
    node.lastWords = '';
    node.running = true;
    const why = node.disk ? this.#resume(node.disk) : this.#begin(node, join);
    if (why !== undefined) this.#end(node, why);
    this.settle();
  }

  stop(node: ModelNode): void {
    node.running = false;
    this.settle();
  }

  wipe(node: ModelNode): void {
    node.disk = undefined;
  }

  isolate(node: ModelNode, isolated: boolean): void {
    node.isolated = isolated;
    node.reachableSince = this.now;
    this.settle();
  }

  advance(ms: number): void {
    this.now += ms;
    this.settle();
  }

  /** Lets happen what does not need time: logs are copied, names published, leaders lost and found, the removed end. */
  settle(): void {
    for (const group of new Set(this.nodes.flatMap(({ disk }) => (disk ? [disk.group] : [])))) {
      this.#elect(group);
      if (group.leader === undefined) continue;
      for (const node of this.live(group)) {
        const { disk } = node;
        if (!disk) continue;
        if (!node.stalled) disk.applied = group.index;
        group.seen.add(disk.id);
        const entry = group.members.get(disk.id);
        if (entry?.name === '' && !node.stalled) publish(group, entry, node);
        if (group.removed.has(disk.id)) this.#end(node, 'the member has been permanently removed from the cluster');
      }
      this.#elect(group);
    }
  }

  /** Processes of a cluster that can reach each other. */
  live(group: Group): readonly ModelNode[] {
    return this.nodes.filter(({ running, isolated, disk }) => running && !isolated && disk?.group === group);
  }

  peers(node: ModelNode, disk: Disk): Peers {
    const nodeOf = (id: bigint): ModelNode | undefined => this.live(disk.group).find((each) => each.disk?.id === id);
    const { group } = disk;
    return {
      self: disk.id,
      now: this.now,
      activeSince: (id) => {
        const peer = nodeOf(id);
        return peer && !node.isolated
          ? Math.max(node.startedAt, peer.startedAt, node.reachableSince, peer.reachableSince)
          : undefined;
      },
      match: (id) => this.nodes.find((each) => each.disk?.group === group && each.disk.id === id)?.disk?.applied ?? 0,
    };
  }

  /** Asks a member: the question is answered by `serve` if somebody is there to ask. */
  ask<T>(ask: Ask, serve: (node: ModelNode, disk: Disk) => T | EtcdError): Promise<Answer<T>> {
    this.settle();
    const node = this.nodes.find(({ endpoint }) => endpoint === ask.endpoint);
    const gone = (kind: 'unreachable' | 'timeout', message: string): Answer<T> => ({
      ok: false,
      error: { kind, message },
    });
    if (!node?.running || !node.disk) return Promise.resolve(gone('unreachable', 'connect ECONNREFUSED'));
    if (node.isolated) return Promise.resolve(gone('timeout', 'the operation timed out'));
    const answer = serve(node, node.disk);
    this.settle();
    return Promise.resolve(isError(answer) ? { ok: false, error: answer } : { ok: true, value: answer });
  }

  #begin(node: ModelNode, { initialCluster, state, token = DEFAULT_TOKEN }: ModelJoin): string | undefined {
    const listed = initialCluster.split(',').map((pair) => pair.split('=') as [string, string]);
    if (!listed.some(([name, url]) => name === node.name && url === node.peerURL))
      return `couldn't find local name "${node.name}" in the initial cluster configuration`;
    return state === 'new' ? this.#bootstrap(node, listed, token) : this.#join(node, listed);
  }

  /** All of the list at once, and ids from the list and the token alone: an emptied seed comes back as the same cluster. */
  #bootstrap(node: ModelNode, listed: readonly [string, string][], token: string): string | undefined {
    const entries = listed.map(([name, url]) => anEntry(memberIdOf([url], token), name, url));
    const id = memberIdOf([node.peerURL], token);
    const clusterId = clusterIdOf(entries.map((entry) => entry.id));
    const known = this.#groups.get(clusterId);
    const others = known && this.live(known).some((each) => each !== node);
    if (others && known.bootstrapped.has(id)) return `member ${id.toString(16)} has already been bootstrapped`;
    const stale = !known || known.bootstrapped.has(id);
    const group = stale ? newGroup(clusterId, entries, this.now) : known;
    this.#groups.set(clusterId, group);
    group.bootstrapped.add(id);
    node.disk = { group, id, applied: 0 };
    return undefined;
  }

  #join(node: ModelNode, listed: readonly [string, string][]): string | undefined {
    const urls = listed.map(([, url]) => url);
    const peer = this.nodes.find(
      (each) => each !== node && each.running && !each.isolated && each.disk && urls.includes(each.peerURL),
    );
    if (!peer?.disk) return 'cannot fetch cluster info from peer urls';
    const { group } = peer.disk;
    if (group.members.size !== urls.length) return 'error validating peerURLs: member count is unequal';
    const strange = [...group.members.values()].some(({ peerURLs }) => !peerURLs.some((url) => urls.includes(url)));
    if (strange) return 'error validating peerURLs: PeerURLs: no match found for existing member';
    const own = [...group.members.values()].find(({ peerURLs }) => peerURLs.includes(node.peerURL));
    if (!own) return 'error validating peerURLs: PeerURLs: no match found for existing member';
    // The leader counts on what this member had: without it, raft stops rather than forget an agreement. A leader that
    // has not seen it yet notices nothing.
    if (group.seen.has(own.id)) return 'tocommit is out of range. Was the raft log corrupted, truncated, or lost?';
    group.bootstrapped.add(own.id);
    node.disk = { group, id: own.id, applied: 0 };
    return undefined;
  }

  #resume({ group, id }: Disk): string | undefined {
    const told = group.removed.has(id) && this.live(group).some(({ disk }) => disk?.id !== id);
    return told ? 'the member has been permanently removed from the cluster' : undefined;
  }

  #elect(group: Group): void {
    const present = voters(group);
    const able = this.live(group).filter(({ disk }) => disk && present.some((voter) => voter.id === disk.id));
    const enough = able.length >= quorum(present.length);
    if (group.leader !== undefined && (!enough || !able.some(({ disk }) => disk?.id === group.leader))) {
      group.leader = undefined;
      group.leaderLostAt = this.now;
    }
    if (group.leader !== undefined || !enough) return;
    if (present.length > 1 && this.now - group.leaderLostAt < ELECTION_MS) return;
    const [best] = able.toSorted((a, b) => (b.disk?.applied ?? 0) - (a.disk?.applied ?? 0));
    group.leader = best?.disk?.id;
    group.seen.clear();
    group.term++;
  }

  #end(node: ModelNode, why: string): void {
    node.running = false;
    node.lastWords = why;
  }
}

const isError = (value: unknown): value is EtcdError =>
  typeof value === 'object' && value !== null && 'kind' in value && 'message' in value;

const anEntry = (id: bigint, name: string, url: string): MemberEntry => ({
  id,
  name,
  peerURLs: [url],
  clientURLs: [],
  isLearner: false,
});

function publish(group: Group, entry: MemberEntry, node: ModelNode): void {
  group.members.set(entry.id, { ...entry, name: node.name, clientURLs: [node.endpoint] });
  group.index++;
}

/** The list as a member gives it. */
export const membershipOf = (group: Group) => ({ clusterId: group.clusterId, members: inOrder(group) });
