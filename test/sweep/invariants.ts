/**
 * What must hold at every moment of every run, whatever happens to the operator. Checked whenever an object changes, around
 * every membership change, and every third of a second.
 */
import type { EtcdMember } from '../../src/api/etcd-member.ts';
import { volumeClaimName } from '../../src/api/names.ts';
import type { Membership } from '../../src/etcd/client.ts';
import { hexId } from '../../src/etcd/ids.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { SeenCall } from '../support/faults/grpc-proxy.ts';
import type { Running } from '../support/kubelet/pod-run.ts';
import { pause } from '../support/servers/processes.ts';
import { CredentialInvariants } from './credential-invariants.ts';
import { MEMBERSHIP, type Rig } from './rig.ts';

const SAMPLE_MS = 333;
const ASK_MS = 1_000;

/** Whether it is not the operator's doing that this object is deleted, or that voters are unreachable after a call. */
export type Excused = (what: 'deletion' | 'call', object?: KubeObject) => boolean;

export class Invariants {
  readonly #rig: Rig;
  readonly #credentials: CredentialInvariants;
  readonly #violations = new Set<string>();
  readonly #clusterIDs = new Set<string>();
  /** Which member a data folder belongs to. */
  readonly #owners = new Map<string, string>();
  readonly #unsubscribe: readonly (() => void)[];
  readonly #checks = new Set<Promise<void>>();
  readonly #excused: Excused;
  #list: Membership | undefined;
  #over = false;

  constructor(rig: Rig, excused: Excused) {
    this.#rig = rig;
    this.#credentials = new CredentialInvariants(rig);
    this.#excused = excused;
    this.#unsubscribe = [
      rig.ledger.onChange(rig.namespace, (kind, before, after) => this.#onChange(kind, before, after)),
      rig.rpcs.onCall((call) => this.#onCall(call)),
    ];
    this.#check(this.#sampling());
  }

  /** Those that were violated so far. */
  get violated(): readonly string[] {
    return [...this.#violations];
  }

  /** The violated invariants. */
  async end(): Promise<readonly string[]> {
    this.#over = true;
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    await Promise.all(this.#checks);
    return this.violated;
  }

  #check(check: Promise<void>): void {
    this.#checks.add(check);
    void check.finally(() => this.#checks.delete(check));
  }

  #onChange(kind: string, before: KubeObject | undefined, after: KubeObject | undefined): void {
    const seeds = this.#rig.members.filter(({ spec }) => spec.bootstrap === true);
    if (seeds.length > 1) this.#violations.add(`I2: ${seeds.length} members are seeds`);
    const deletionStarted =
      after?.metadata.deletionTimestamp !== undefined && before?.metadata.deletionTimestamp === undefined;
    const removed = after === undefined && before !== undefined && before.metadata.deletionTimestamp === undefined;
    const object = after ?? before;
    if (!(deletionStarted || removed) || this.#excused('deletion', object)) return;
    const name = object?.metadata.name ?? '';
    if (kind === 'PersistentVolumeClaim') this.#check(this.#volumeGoes(name));
    if (kind === 'Pod') this.#check(this.#podGoes(name));
  }

  async #volumeGoes(claim: string): Promise<void> {
    const list = (await this.#ask({ linearizable: true })) ?? this.#list;
    const listed = list?.members.find(({ name }) => volumeClaimName(name) === claim);
    if (listed) this.#violations.add(`I6: PVC ${claim} is deleted while etcd counts its member ${hexId(listed.id)}`);
  }

  async #podGoes(name: string): Promise<void> {
    const others = this.#running().flatMap(({ pod }) => (pod.metadata.name === name ? [] : (pod.metadata.name ?? '')));
    const voters = votersOf((await this.#ask({ linearizable: true })) ?? this.#list);
    const left = others.filter((each) => voters.includes(each));
    if (voters.includes(name) && left.length < quorum(voters.length))
      this.#violations.add(`I4: Pod ${name} is deleted, and ${left.length} of ${voters.length} voters are left`);
  }

  #onCall(call: SeenCall): void {
    if (!MEMBERSHIP.includes(call.method)) return;
    const others = this.#rig.membershipCalls().filter((other) => other !== call && other.open);
    if (others.length > 0) this.#violations.add(`I3: ${call.method} while ${others[0]?.method} is in flight`);
    this.#check(
      call.over.then(async () => {
        const after = votersOf(await this.#ask());
        const left = this.#reachable(after);
        if (left.length >= quorum(after.length) || after.length === 0 || this.#excused('call')) return;
        this.#violations.add(`I4: after ${call.method} ${left.length} of ${after.length} voters are reachable`);
      }),
    );
  }

  async #sampling(): Promise<void> {
    while (!this.#over) {
      await Promise.all(this.#running().map((run) => this.#sample(run)));
      await this.#ask();
      for (const violated of await this.#credentials.sample(this.#running())) this.#violations.add(violated);
      await pause(SAMPLE_MS);
    }
  }

  async #sample(run: Running): Promise<void> {
    const ask = this.#rig.asClient(run, ASK_MS);
    const status = ask && (await this.#rig.world.etcd.status(ask));
    if (!status?.ok || status.value.memberId === 0n) return;
    this.#clusterIDs.add(hexId(status.value.clusterId));
    if (this.#clusterIDs.size > 1)
      this.#violations.add(`I1: members responded for ${[...this.#clusterIDs].join(' and ')}`);
    const id = hexId(status.value.memberId);
    const owner = this.#owners.get(run.data) ?? id;
    if (owner !== id) this.#violations.add(`I5: the data of member ${owner} is used by ${id}`);
    this.#owners.set(run.data, id);
  }

  /** The members of the cluster, as a member that responds knows them; one that has just started may know an earlier state. */
  async #ask({ linearizable = false } = {}): Promise<Membership | undefined> {
    for (const run of this.#running()) {
      const ask = this.#rig.asClient(run, ASK_MS);
      const answer = ask && (await this.#rig.world.etcd.memberList({ ...ask, linearizable }));
      if (!answer?.ok) continue;
      this.#list = answer.value;
      return answer.value;
    }
    return undefined;
  }

  #running(): readonly Running[] {
    return this.#rig.world.kubelet.running(this.#rig.namespace).filter((run) => run.alive);
  }

  #reachable(voters: readonly string[]): readonly string[] {
    return this.#running().flatMap(({ pod }) => voters.filter((name) => name === pod.metadata.name));
  }

  /** At rest, etcd and Kubernetes agree on the members of the cluster. */
  async atRest(): Promise<void> {
    for (const violated of await this.#credentials.atRest(this.#running())) this.#violations.add(violated);
    const members = this.#rig.members;
    if (members.every(({ spec }) => (spec as { readonly dormant?: boolean }).dormant === true)) return;
    const listed = ((await this.#ask({ linearizable: true }))?.members ?? []).map(
      (m) => `${m.name} ${hexId(m.id)} ${m.isLearner ? '' : 'votes'}`,
    );
    const known = members.map((m: EtcdMember) => `${m.metadata.name} ${m.status?.memberID} votes`);
    if (listed.sort().join() !== known.sort().join())
      this.#violations.add(`I7: etcd lists ${listed.join(', ')}; Kubernetes has ${known.join(', ')}`);
  }
}

const quorum = (voters: number): number => Math.floor(voters / 2) + 1;
const votersOf = (list: Membership | undefined): readonly string[] =>
  (list?.members ?? []).filter(({ isLearner }) => !isLearner).map(({ name }) => name);
