/**
 * A model of etcd for tests of the operator: processes, persistent disks, quorums, learners, elections, and the errors of
 * the real etcd. Time advances only when a test advances it. The contract suite compares it with the real servers.
 */
import { CLIENT_PORT, PEER_PORT } from '../../../src/api/names.ts';
import type { Ask, MemberEntry } from '../../../src/etcd/client.ts';
import type { EtcdError, Result } from '../../../src/etcd/errors.ts';
import type { TlsMaterial } from '../../../src/etcd/transport.ts';
import { bootstrapOrJoin, type ModelJoin, restored } from './etcd-begin.ts';
import { Group, inOrder, type Peers, quorum, voters } from './etcd-group.ts';
import { type Disk, inUse, type ModelNode, type NodeOptions, newDisk, rebase, stateOf } from './etcd-node.ts';
import { isRefusal } from './etcd-said.ts';
import { fingerprintOf, inContact, refusesHandshake } from './etcd-tls.ts';
import { checkVersion, mayStart, minorOf } from './etcd-version.ts';

export type { ModelJoin } from './etcd-begin.ts';
export type { ModelNode, NodeOptions } from './etcd-node.ts';

export const ELECTION_MS = 1_000;
export const DEFAULT_VERSION = '3.6.16';
const REMOVED = 'the member has been permanently removed from the cluster';
export class ModelEtcd {
  readonly nodes: ModelNode[] = [];
  readonly groups = new Map<bigint, Group>();
  now = 0;
  /** How many tokens all members together have issued. */
  tokens = 0;
  /** How long the next defragmentation takes. */
  defragmentMs = (): number => 0;
  /** Called once, with the next member that joins. */
  onJoin: ((node: ModelNode) => void) | undefined;
  #count = 0;

  node(name: string, options: NodeOptions = {}): ModelNode {
    const address = `10.${Math.floor(++this.#count / 65_536)}.${Math.floor(this.#count / 256) % 256}.${this.#count % 256}`;
    const node: ModelNode = {
      name,
      endpoint: options.endpoint ?? `http://${address}:2379`,
      peerURL: options.peerURL ?? `http://${address}:2380`,
      options,
      maxLearners: options.maxLearners ?? 1,
      version: options.version ?? DEFAULT_VERSION,
      disk: undefined,
      running: false,
      serving: false,
      published: false,
      servesAt: 0,
      defragmentsUntil: 0,
      isolated: false,
      stalled: false,
      startedAt: 0,
      reachableSince: 0,
      lastWords: '',
      misjudges: new Set(),
      tokens: new Map(),
    };
    this.nodes.push(node);
    return node;
  }

  /** Starts the process. One that cannot start has ended when this returns, with its error in `lastWords`. */
  start(node: ModelNode, join: ModelJoin): void {
    this.#run(node);
    const joins = !node.disk && join.state === 'existing';
    const error = flagsOf(node) ?? (node.disk ? this.#resume(node, node.disk) : bootstrapOrJoin(this, node, join));
    if (joins && node.disk) {
      node.servesAt = this.now + lateness(node, node.disk.group);
      this.onJoin?.(node);
      this.onJoin = undefined;
    }
    if (error !== undefined) this.#end(node, error);
    this.settle();
  }

  /** What etcdutl makes of a snapshot: a cluster of the listed members, without contacting any of them. */
  restored(join: ModelJoin & { readonly peerURL: string }): { readonly group: Group; readonly id: bigint } {
    return restored(this, join.peerURL, join);
  }

  /** Kills it during its very first start, after its WAL was created and before anything was written to it. */
  startAndKill(node: ModelNode, join: ModelJoin): void {
    this.#run(node);
    if (
      !node.disk &&
      flagsOf(node) === undefined &&
      bootstrapOrJoin(this, node, join) === undefined &&
      join.state === 'new'
    ) {
      const { group, id } = node.disk as unknown as Disk;
      group.bootstrapped.delete(id);
      node.disk = newDisk(new Group(group.clusterId, [], this.now), id); // of a cluster without members
    }
    this.stop(node);
  }

  stop(node: ModelNode): void {
    node.running = node.serving = false;
    this.settle();
  }

  wipe(node: ModelNode): void {
    node.disk = undefined;
  }

  /** As --force-new-cluster: it drops all other members and continues alone under the same cluster id. */
  forceNew(node: ModelNode): void {
    const { group, id } = node.disk ?? {};
    const own = group?.members.get(id ?? 0n);
    if (!group || !own) return;
    const alone = new Group(group.clusterId, [own], this.now);
    alone.bootstrapped.add(own.id);
    node.disk = newDisk(alone, own.id);
    node.serving = node.published = false;
    this.settle();
  }

  isolate(node: ModelNode, isolated: boolean): void {
    node.isolated = isolated;
    node.reachableSince = this.now;
    this.#reconnect(node);
    this.settle();
  }

  /** Rewrites its database, which takes this long. */
  defragment(node: ModelNode, ms: number): void {
    node.defragmentsUntil = ms === 0 ? 0 : this.now + ms;
    if (ms === 0 && node.disk) node.disk.dbSize = inUse(node.disk);
  }

  advance(ms: number): void {
    this.now += ms;
    this.settle();
  }

  /** Does everything that takes no time: copies logs, publishes names, elects leaders, ends removed members. */
  settle(): void {
    for (const node of this.nodes) this.#endDefragmentation(node);
    for (const [group, all] of this.#alive()) {
      const live = inContact(all);
      copyLog(group, live);
      this.#elect(group, live);
      if (group.leader === undefined) continue;
      for (const node of live) if (node.disk) this.#follow(node, node.disk);
      checkVersion(group, live, this.now);
      this.#elect(group, live);
    }
  }

  /** Processes of a cluster that can reach each other. */
  live(group: Group): readonly ModelNode[] {
    return inContact(this.nodes.filter(({ running, isolated, disk }) => running && !isolated && disk?.group === group));
  }

  peers(node: ModelNode, disk: Disk): Peers {
    const { group } = disk;
    const live = this.live(group);
    return {
      self: disk.id,
      now: this.now,
      activeSince: (id) => {
        const peer = live.find((each) => each.disk?.id === id);
        return peer && !node.isolated && !node.misjudges.has(peer)
          ? Math.max(node.startedAt, peer.startedAt, node.reachableSince, peer.reachableSince)
          : undefined;
      },
      match: (id) => group.matches.get(id) ?? 0,
    };
  }

  /** Sends a request to a member; `serve` handles it if a process runs there. */
  ask<T>(ask: Ask, serve: (node: ModelNode, disk: Disk) => T | EtcdError): Promise<Result<T>> {
    if (ask.signal?.aborted) return Promise.resolve(failed('canceled', 'the caller gave up'));
    this.settle();
    const node = this.nodes.find(({ endpoint }) => endpoint === ask.endpoint);
    if (!node?.running || !node.disk) return Promise.resolve(failed('unreachable', 'connect ECONNREFUSED'));
    if (node.isolated || !node.serving) return Promise.resolve(failed('timeout', 'the operation timed out'));
    const { tls } = node.options;
    const refused = tls && refusesHandshake(tls.client, ask.access?.tls?.(ask.endpoint));
    if (refused) return Promise.resolve({ ok: false, error: refused });
    const { clusterId } = node.disk.group;
    const answer = serve(node, node.disk);
    this.settle();
    if (isRefusal(answer)) return Promise.resolve({ ok: false, error: answer });
    const meant = ask.access?.clusterId;
    if (meant !== undefined && meant !== clusterId)
      return Promise.resolve(failed('wrongCluster', `the response is from cluster ${clusterId.toString(16)}`));
    return Promise.resolve({ ok: true, value: answer });
  }

  /** The fingerprint of the certificate that is served there: the client port listens when the member serves, the peer port before. */
  served(endpoint: string, tls: TlsMaterial): string | undefined {
    const { origin, port } = new URL(endpoint);
    const isPeer = port === String(PEER_PORT);
    const at = isPeer ? origin.replace(port, String(CLIENT_PORT)).replace('https:', '') : origin;
    const node = this.nodes.find((each) => (isPeer ? each.endpoint.endsWith(at) : each.endpoint === at));
    if (!node?.running || node.isolated || (!isPeer && !node.serving)) return undefined;
    const { client, peer } = node.options.tls ?? {};
    const served = isPeer ? peer && { leaf: peer.leaf } : client;
    return served && !refusesHandshake(served, tls) ? fingerprintOf(served.leaf()) : undefined;
  }

  #alive(): Map<Group, ModelNode[]> {
    const alive = new Map<Group, ModelNode[]>();
    for (const node of this.nodes) {
      if (!node.disk) continue;
      rebase(node.disk);
      const live = alive.get(node.disk.group) ?? [];
      if (live.length === 0) alive.set(node.disk.group, live);
      if (node.running && !node.isolated) live.push(node);
    }
    return alive;
  }

  #follow(node: ModelNode, disk: Disk): void {
    const { group, id } = disk;
    if (!node.stalled) {
      if (!node.published) publish(group, id, node);
      node.published = true;
      disk.applied = group.index;
      node.serving = this.now >= node.servesAt;
    }
    group.matches.set(id, disk.applied);
    if (group.removed.has(id)) this.#end(node, REMOVED);
  }

  #resume(node: ModelNode, disk: Disk): string | undefined {
    const { group, id } = disk;
    if (group.removed.has(id) && this.live(group).some((each) => each.disk?.id !== id)) return REMOVED;
    return mayStart(node.version, stateOf(disk));
  }

  #elect(group: Group, live: readonly ModelNode[]): void {
    const size = voters(group).length;
    const able = live.filter(
      ({ disk, stalled }) => disk && !stalled && group.members.get(disk.id)?.isLearner === false,
    );
    const enough = able.length >= quorum(size);
    if (group.leader !== undefined && (!enough || !able.some(({ disk }) => disk?.id === group.leader))) {
      group.leader = undefined;
      group.leaderLostAt = this.now;
    }
    if (group.leader !== undefined || !enough) return;
    if (size > 1 && this.now - group.leaderLostAt < ELECTION_MS) return;
    const applied = ({ disk }: ModelNode): number => disk?.applied ?? 0;
    const [best] = able.toSorted((a, b) => applied(b) - applied(a));
    if (!best?.disk) return;
    group.forgetAfter(best.disk.applied); // an emptied leader is accepted again: then what only it had is lost for the whole cluster
    this.lead(group, best.disk.id);
  }

  lead(group: Group, id: bigint): void {
    group.leader = id;
    group.matches.clear();
    group.term++;
  }

  #endDefragmentation(node: ModelNode): void {
    if (node.defragmentsUntil === 0 || this.now < node.defragmentsUntil) return;
    node.defragmentsUntil = 0;
    if (node.disk) node.disk.dbSize = inUse(node.disk);
  }

  /** Only new streams make each side consider the other active again. */
  #reconnect(node: ModelNode): void {
    node.misjudges.clear();
    for (const each of this.nodes) each.misjudges.delete(node);
  }

  #run(node: ModelNode): void {
    this.#reconnect(node);
    node.startedAt = node.reachableSince = this.now;
    node.lastWords = '';
    node.running = true;
    node.serving = node.published = false;
    node.servesAt = node.defragmentsUntil = 0;
    node.tokens.clear();
  }

  #end(node: ModelNode, error: string): void {
    node.running = node.serving = false;
    node.lastWords = error;
  }
}

const failed = (kind: EtcdError['kind'], message: string): { ok: false; error: EtcdError } => ({
  ok: false,
  error: { kind, message },
});

/**
 * A name that arrives in a snapshot does not count as published: the member publishes it again, after this long.
 * With fewer entries than this no snapshot is sent.
 */
const SNAPSHOT_ENTRIES = 100;
const PUBLISHED_AGAIN_MS = 7_000;
const lateness = ({ version }: ModelNode, group: Group): number =>
  minorOf(version) >= 6 && group.index > SNAPSHOT_ENTRIES ? PUBLISHED_AGAIN_MS : 0;

const flagsOf = ({ version, options }: ModelNode): string | undefined =>
  options.maxLearners !== undefined && minorOf(version) < 6
    ? 'flag provided but not defined: -max-learners'
    : undefined;

/** Committed entries are on the members that committed them, even if an entry leaves them without a quorum. */
function copyLog(group: Group, live: readonly ModelNode[]): void {
  if (!live.some(({ disk }) => disk?.id === group.leader)) return;
  for (const { disk, serving, stalled } of live) {
    if (!disk || !serving || stalled) continue;
    disk.applied = group.index;
    group.matches.set(disk.id, disk.applied);
  }
}

/** A member publishes its name and its client URLs every time it starts. */
function publish(group: Group, id: bigint, node: ModelNode): void {
  const entry: Partial<MemberEntry> = { name: node.name, clientURLs: [node.endpoint] };
  group.commit(({ members }) => {
    const known = members.get(id);
    if (known) members.set(id, { ...known, ...entry });
  });
}

/** The member list as a member returns it. */
export const membershipOf = ({ clusterId, members }: Pick<Group, 'clusterId' | 'members'>) => ({
  clusterId,
  members: inOrder({ members }),
});
