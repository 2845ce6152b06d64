/** Runs a script: applies its faults, checks the invariants after every step, and then expects the world to converge. */
import type { EtcdCluster } from '../../src/api/etcd-cluster.ts';
import { PEER_AUTO_TLS_ANNOTATION } from '../../src/api/names.ts';
import type { Result } from '../../src/etcd/errors.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { recordedBundles } from './credential-invariants.ts';
import { Faults } from './faults/faults.ts';
import { QUOTA } from './faults/space.ts';
import {
  AFTER_CHANGE,
  AFTER_WRITE,
  ALWAYS,
  BEFORE_CHANGE,
  BEFORE_WRITE,
  ON_QUESTION,
  type Scene,
} from './invariants.ts';
import { forgetCertificates } from './model/etcd-tls.ts';
import { writesAreGranted } from './permission-invariants.ts';
import { unrest } from './rest.ts';
import type { Script } from './script.ts';
import { suspendedIsNotWritten, suspendedIsOnlyAsked } from './suspend-invariants.ts';
import { groupOf } from './world/facts.ts';
import { History } from './world/history.ts';
import type { MembershipCall, Onlooker, Write } from './world/operator-ports.ts';
import { World, type WorldOptions } from './world/world.ts';

export interface Outcome {
  readonly steps: number;
  readonly virtualMs: number;
  readonly tally: ReadonlyMap<string, number>;
  /** The invariant that was violated, and when. */
  readonly broken: string | undefined;
  readonly story: readonly string[];
}

/** Repairs wait for a node that may come back, and Kubernetes for up to five minutes between two starts of a container. */
const PATIENCE_MS = 60 * 60_000;
/** When nothing has been written for this long, no further write is expected soon. */
const LULL_MS = 20_000;
const POLL_MS = 5_000;
/** What an operator does this long after an event may be a reaction to it: a run of etcd counts as stable after a minute, and its message is coalesced twice, in the member and in its cluster. */
const PROVOKED_MS = 95_000;
const QUIET_MS = 10 * 60_000;

/** Far more than any world needs: reaching it means a hot loop. */
const MAX_STEPS = 150_000;

/** Between two of these, a killed operator must not lose the root password. */
const PASSWORD_CALLS = ['deleteUser', 'addUser', 'grantRole', 'enable', 'changePassword', 'authenticate'];

class Broken extends Error {}

const nameOf = ({ verb, resource, ref }: Write): string => `${verb} ${resource.kind} ${ref.name}`;

/** Checks everything that operators do, and records when they last did something. */
export class Judge implements Onlooker {
  readonly scene: Scene;
  lastActAt = 0;
  lastAct = '';
  /** All writes of operators, such as `delete Pod db-x`. */
  readonly writes: string[] = [];
  /** A write of an operator although nothing else had happened for a while. */
  unprovoked: { readonly what: string; readonly at: number } | undefined;
  broken: string | undefined;

  constructor(world: World, retains: boolean) {
    const history = new History(world);
    this.scene = {
      world,
      history,
      servedAt: undefined,
      dataExcused: false,
      edited: false,
      retains,
      deletedByPerson: new Set(),
      replaced: new Map(),
      remade: new Map(),
      usurpedUntil: 0,
      connected: false,
      inFlight: new Set(),
    };
  }

  before(write: Write): void {
    this.#act(nameOf(write));
    const { credentials } = this.scene.world;
    if (credentials && write.resource.kind === 'Secret') credentials.calls++;
    for (const [name, check] of Object.entries({ ...BEFORE_WRITE, suspendedIsNotWritten, writesAreGranted }))
      this.#say(name, check(this.scene, write));
  }
  after(write: Write, result: KubeObject | undefined): void {
    this.writes.push(nameOf(write));
    this.scene.history.record();
    if (this.scene.usurpedUntil > this.scene.world.ground.timeline.now) return; // either member list may be right
    for (const [name, check] of Object.entries(AFTER_WRITE)) this.#say(name, check(this.scene, write, result));
  }
  asks(call: MembershipCall): void {
    const { credentials } = this.scene.world;
    if (credentials && PASSWORD_CALLS.includes(call.method)) credentials.calls++;
    for (const [name, check] of Object.entries({ ...ON_QUESTION, suspendedIsOnlyAsked }))
      this.#say(name, check(this.scene, call));
  }
  changes(call: MembershipCall): void {
    this.scene.inFlight.add(call);
    for (const [name, check] of Object.entries(BEFORE_CHANGE)) this.#say(name, check(this.scene, call));
  }
  changed(call: MembershipCall, answer: Result<unknown>): void {
    this.#act(`etcd ${call.method}`);
    for (const [name, check] of Object.entries(AFTER_CHANGE)) this.#say(name, check(this.scene, call, answer));
  }
  answered(call: MembershipCall): void {
    this.scene.inFlight.delete(call);
  }

  always(): void {
    this.scene.history.record();
    const { world } = this.scene;
    if (world.writer.isServed(groupOf(world))) this.scene.servedAt ??= world.ground.timeline.now;
    if (world.credentials) for (const bundle of recordedBundles(world)) world.credentials.recorded.add(bundle);
    for (const [name, check] of Object.entries(ALWAYS)) this.#say(name, check(this.scene));
    if (this.broken !== undefined) throw new Broken(this.broken);
  }

  #act(what: string): void {
    this.lastActAt = this.scene.world.ground.timeline.now;
    this.lastAct = what;
    if (this.lastActAt - this.scene.world.ground.changedAt > PROVOKED_MS)
      this.unprovoked = { what, at: this.lastActAt };
  }
  #say(name: string, sentence: string | undefined): void {
    if (sentence !== undefined) this.broken ??= `${name}: ${sentence}`;
  }
}

export function run(script: Script, tellStory = false): Promise<Outcome> {
  const { seed, nodes, localVolumes, credentials } = script;
  const retains = script.deletionPolicy === 'Retain';
  const annotations = script.peerAutoTls ? { [PEER_AUTO_TLS_ANNOTATION]: 'true' } : {};
  const options = { seed, nodes, localVolumes, credentials, annotations, tellStory };
  return judged(options, retains, (world, judge) => live(world, judge, script));
}

/** Lets a world live under the invariants. */
export async function judged(
  options: WorldOptions,
  retains: boolean,
  living: (world: World, judge: Judge) => Promise<void>,
): Promise<Outcome> {
  let judge: Judge | undefined;
  const world = new World(options, (self) => {
    judge = new Judge(self, retains);
    return judge;
  });
  if (!judge) throw new Error('the world was started without a judge');
  let broken: string | undefined;
  try {
    await living(world, judge);
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    broken = error.message;
  } finally {
    for (const operator of world.operators) operator.kill();
    forgetCertificates();
  }
  const { timeline, tally, story = [] } = world.ground;
  if (broken !== undefined) world.ground.tell(() => `BROKEN ${broken}`);
  return { steps: timeline.steps, virtualMs: timeline.now, tally, broken, story };
}

async function live(world: World, judge: Judge, script: Script): Promise<void> {
  const { timeline } = world.ground;
  const spec = { ...specOf(script), ...world.credentials?.spec };
  const faults = new Faults(judge.scene, spec);
  const step = stepper(world, judge, () => faults.everyStep());
  world.createCluster(spec);
  for (const action of script.actions) {
    const at = timeline.now + action.after;
    while (await step(at));
    timeline.now = at;
    faults.apply(action);
    judge.always();
  }
  faults.heal();
  judge.always();
  world.ground.tell(() => '*** all faults have ended');
  await peace(world, judge, step);
}

/** Runs one event until then, and checks the invariants. */
const stepper =
  (world: World, judge: Judge, fail = (): void => undefined) =>
  async (until: number): Promise<boolean> => {
    const { timeline } = world.ground;
    if (!(await world.step(until))) return false;
    if (timeline.steps > MAX_STEPS) throw new Broken(`neverSpins: ${MAX_STEPS} steps, and ${judge.lastAct} again`);
    fail();
    judge.always();
    return true;
  };

/** The world converges in time, and then nothing is written any more. */
export async function peace(world: World, judge: Judge, step = stepper(world, judge)): Promise<void> {
  const { timeline } = world.ground;
  const deadline = timeline.now + PATIENCE_MS;
  judge.lastActAt = timeline.now; // an operator may still react to the last fault
  const isLull = (): boolean => timeline.now - judge.lastActAt >= LULL_MS;
  for (let wrong: string | undefined = 'not checked yet'; wrong !== undefined; ) {
    if (timeline.now >= deadline) throw new Broken(`converges: ${wrong}`);
    const until = timeline.now + POLL_MS;
    if (!(await step(until))) timeline.now = until;
    wrong = isLull() ? unrest(judge.scene) : `${judge.lastAct} just now`;
  }
  world.ground.tell(() => '*** at rest');
  world.writer.rest();
  const since = timeline.now;
  while (await step(since + QUIET_MS));
  const { unprovoked } = judge;
  if (unprovoked && unprovoked.at > since)
    throw new Broken(`staysStill: ${unprovoked.what} although nothing had changed`);
  const wrong = unrest(judge.scene);
  if (wrong !== undefined) throw new Broken(`staysAtRest: ${wrong}`);
}

const specOf = ({ replicas, version, medium, deletionPolicy, restores, remedies }: Script): EtcdCluster['spec'] => ({
  ...(deletionPolicy === 'Retain' && { deletionPolicy }),
  replicas,
  version,
  storage: { size: '1Gi', medium },
  ...(remedies && {
    options: { quotaBackendBytes: QUOTA },
    maintenance: { autoRemedy: { enabled: true, keepRevisions: 3 } },
  }),
  ...(restores &&
    medium === '' && {
      bootstrap: {
        restore: {
          source: { s3: { bucket: 'backups', key: 'db', endpoint: 'http://s3', credentialsSecretRef: { name: 's3' } } },
        },
      },
    }),
});
