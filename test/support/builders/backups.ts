/**
 * The life of one schedule: the rules of its controller decide, the tasks of its Jobs run on two stores in memory, and clients
 * damage, delete and forge what is there. What really happened is known, so that the end can be compared with it.
 */
import { createHash } from 'node:crypto';
import { AgentFailure } from '../../../src/agent/failure.ts';
import { type Manifest, manifestText, readManifest } from '../../../src/agent/format/manifest.ts';
import { seal } from '../../../src/agent/format/seal.ts';
import { type KeyRing, sealKey } from '../../../src/agent/format/seal-key.ts';
import { copy } from '../../../src/agent/tasks/copy.ts';
import { openSnapshot } from '../../../src/agent/tasks/open-snapshot.ts';
import { prune } from '../../../src/agent/tasks/prune.ts';
import { scrub } from '../../../src/agent/tasks/scrub.ts';
import { type EtcdSnapshot, isCopyPending } from '../../../src/api/etcd-snapshot.ts';
import type { EtcdSnapshotScheduleSpec, EtcdSnapshotScheduleStatus } from '../../../src/api/etcd-snapshot-schedule.ts';
import { copyJob } from '../../../src/controllers/snapshot/build-copy.ts';
import { decide } from '../../../src/controllers/snapshot-schedule/decide.ts';
import type { Observed, OwnedJob } from '../../../src/controllers/snapshot-schedule/observed.ts';
import {
  MANIFEST,
  MOUNTS,
  objectKeyOf,
  type PruneTask,
  TASK_VARIABLE,
  type Task,
} from '../../../src/domain/agent-task.ts';
import { endOf } from '../../../src/domain/job.ts';
import type { Job } from '../../../src/gen/kube.ts';
import { aCluster } from './builders.ts';
import { MemoryStore } from './memory-store.ts';
import { aSchedule, aWork, RESTORED, SCHEDULE_UID } from './schedules.ts';

const HOUR = 3_600_000;
const SECTOR = 512;
const NEVER = new AbortController().signal;
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** A snapshot as the agent has stored it. */
export interface Real {
  readonly name: string;
  readonly uid: string;
  readonly slot: number;
  readonly key: string;
  readonly copyKey: string;
  readonly object: Buffer;
  readonly manifest: Buffer;
  /** The member had damaged pages: every digest matches, and it cannot be restored. */
  readonly isRotten: boolean;
}

/** What a retention Job has done. */
export interface Pruned {
  readonly task: PruneTask;
  readonly ofCopies: boolean;
  readonly before: ReadonlyMap<string, unknown>;
  readonly after: ReadonlyMap<string, unknown>;
}

export class Backups {
  now = Date.parse('2026-03-01T00:30:00Z');
  readonly first = new MemoryStore('s3://b/');
  readonly second = new MemoryStore(`file://${MOUNTS.copy}/`);
  readonly real = new Map<string, Real>();
  readonly pruned: Pruned[] = [];
  readonly broken: string[] = [];
  status: EtcdSnapshotScheduleStatus = {};
  runs: readonly EtcdSnapshot[] = [];
  jobs: readonly OwnedJob[] = [];
  /** Of the next snapshot, and the next drill. */
  readonly next = {
    snapshot: 'stored' as 'stored' | 'rotten' | 'killed' | 'failed',
    drill: 'true' as 'true' | 'NoSpace',
  };
  readonly keys: KeyRing | undefined;
  spec: Partial<EtcdSnapshotScheduleSpec>;
  /** What the last drill has shown. */
  #shown: 'restored' | 'failed' | undefined;

  constructor(spec: Partial<EtcdSnapshotScheduleSpec>, isEncrypted: boolean) {
    const current = sealKey(Buffer.alloc(32, 'k'));
    this.keys = isEncrypted ? { current, all: [current] } : undefined;
    this.spec = { ...spec, ...(isEncrypted && { encryption: { keySecretRef: { name: 'key' } } }) };
  }

  get observed(): Observed {
    return {
      now: this.now,
      refusal: undefined,
      object: aSchedule(this.spec, this.status),
      cluster: aCluster(),
      runs: this.runs,
      due: { is: 'absent' },
      jobs: this.jobs,
      operatorImage: 'operator:1',
      images: { repository: 'quay.io/coreos/etcd', allowed: [] },
    };
  }

  /** Until nothing is left to do at this moment. */
  async reconcile(): Promise<void> {
    for (let round = 0; round < 40; round++) {
      const plan = decide(this.observed);
      this.status = { ...plan.status, ...plan.latch };
      if (plan.steps.length === 0 && !plan.latch) return;
      for (const step of plan.steps)
        if (step.do === 'delete') this.runs = this.runs.filter(({ metadata }) => metadata.name !== step.what.name);
        else if (step.do === 'create' && step.object.kind === 'Job') this.#create(step.object as Job);
        else if (step.do === 'create') await this.#take(step.object as EtcdSnapshot);
    }
    throw new Error('the schedule does not come to rest');
  }

  #create(job: Job): void {
    const name = job.metadata.name ?? '';
    const running = this.jobs.filter((each) => !endOf(each.job)).map((each) => each.job.metadata.name ?? '');
    const isRunning = (task: string): boolean => running.some((each) => each.startsWith(`hourly-${task}-`));
    if (name.startsWith('hourly-prune-')) {
      if (this.#shown === 'failed' && this.spec.drill) this.broken.push(`${name}: retention after a failed drill`);
      const isOfCopies = taskOf(job).task === 'prune' && (taskOf(job) as PruneTask).at.kind === 'pvc';
      if (isRunning('drill') || isRunning('prune') || (isRunning('scrub') && !isOfCopies))
        this.broken.push(`${name} beside ${running.join(', ')}`);
    } else if (isRunning('prune')) this.broken.push(`${name} beside a retention Job: ${running.join(', ')}`);
    this.jobs = [...this.jobs, { job, pods: [] }];
  }

  async #take(made: EtcdSnapshot): Promise<void> {
    const { name = '' } = made.metadata;
    const outcome = this.next.snapshot;
    this.next.snapshot = 'stored';
    const uid = `uid-${name}`;
    const run = { ...made, metadata: { ...made.metadata, uid } };
    const completionTime = new Date(this.now).toISOString();
    const stored = outcome === 'failed' ? undefined : await this.#store(run, outcome);
    const failed = { phase: 'Failed', completionTime };
    const artifact = stored && {
      uri: this.first.uri(stored.key),
      checksum: `sha256:${sha256(stored.object)}`,
      sizeBytes: stored.object.length,
    };
    const isStored = artifact !== undefined && outcome !== 'killed';
    this.runs = [...this.runs, { ...run, status: isStored ? { phase: 'Complete', completionTime, artifact } : failed }];
  }

  async #store(run: EtcdSnapshot, outcome: 'stored' | 'rotten' | 'killed'): Promise<Real> {
    const { name = '', uid = '' } = run.metadata;
    const key = objectKeyOf(run.spec, { namespace: 'ns', name });
    const takenAt = new Date(this.now).toISOString();
    const file = key.slice(key.lastIndexOf('/') + 1);
    const page = Buffer.alloc(SECTOR, `${name} ${outcome} `);
    const database = Buffer.concat([page, createHash('sha256').update(page).digest()]);
    const sealed = this.keys && seal(this.keys.current, { path: file, uid, takenAt }, one(database));
    const object = sealed ? Buffer.concat(await Array.fromAsync(sealed)) : database;
    const about: Manifest = {
      version: 1,
      object: { key: file, ...(sealed && { path: file }), sizeBytes: object.length, sha256: sha256(object) },
      database: { sizeBytes: database.length, sha256: sha256(database) },
      snapshot: { namespace: 'ns', name, uid },
      cluster: { name: 'db', uid: aCluster().metadata.uid ?? '', id: 'cafe000000000001' },
      schedule: { name: 'hourly', uid: SCHEDULE_UID },
      revision: 1,
      totalKeys: 1,
      etcdVersion: '3.6.1',
      authEnabled: false,
      member: 'db-0',
      compression: 'none',
      ...(this.keys && { encryption: { algorithm: 'AES-256-GCM', keyId: this.keys.current.id } }),
      takenAt,
      durationMs: 1,
    };
    const manifest = Buffer.from(manifestText(about, this.keys?.current));
    const owner = { uid, schedule: SCHEDULE_UID, replace: false, signal: NEVER };
    await this.first.put(key, one(object), owner);
    const copyKey = `copies/${file}`;
    const real = {
      name,
      uid,
      slot: this.now - (this.now % HOUR),
      key,
      copyKey,
      object,
      manifest,
      isRotten: outcome === 'rotten',
    };
    if (outcome === 'killed') return real;
    await this.first.put(`${key}${MANIFEST}`, one(manifest), owner);
    this.real.set(name, real);
    return real;
  }

  /** All Jobs that run end, the agent of a retention perhaps killed before this deletion. */
  async finish(diesBefore = Number.POSITIVE_INFINITY): Promise<void> {
    for (const { job } of this.jobs.filter((each) => !endOf(each.job))) {
      const at = new Date(this.now).toISOString();
      const result = await this.#run(taskOf(job), diesBefore).catch((error: unknown) => {
        if (error instanceof AgentFailure) return { ok: false, reason: error.reason, message: error.message };
        throw error;
      });
      const about = Object.values(job.metadata.annotations ?? {})[0];
      const ended = aWork(job.metadata.name ?? '', { type: result.ok ? 'Complete' : 'Failed', at }, result, about);
      this.jobs = this.jobs.map((each) => (each.job === job ? ended : each));
    }
  }

  async #run(task: Task, diesBefore: number): Promise<{ readonly ok: boolean }> {
    const { keys } = this;
    if (task.task === 'prune') return this.#prune(task, diesBefore);
    if (task.task === 'scrub') return scrub({ store: this.first, task, say: () => {}, signal: NEVER, keys });
    if (task.task !== 'drill') throw new Error(`no ${task.task} was expected`);
    if (this.next.drill === 'NoSpace') {
      this.next.drill = 'true';
      throw new AgentFailure('NoSpace', 'the node is full');
    }
    this.#shown = 'failed';
    const manifest = await readManifest(this.first, task.key, NEVER, keys?.all);
    const { pages } = await openSnapshot(
      { store: this.first, key: task.key, signal: NEVER, ...(keys && { keys }) },
      manifest,
    );
    for await (const _ of pages);
    if (this.real.get(manifest.snapshot.name)?.isRotten) throw new AgentFailure('DrillFailed', 'pages are damaged');
    this.#shown = 'restored';
    return RESTORED;
  }

  async #prune(task: PruneTask, diesBefore: number): Promise<{ readonly ok: boolean }> {
    const ofCopies = task.at.kind === 'pvc';
    const store = ofCopies ? this.second : this.first;
    const before = new Map(store.objects);
    const other = new Map((ofCopies ? this.first : this.second).objects);
    store.diesBefore = diesBefore;
    try {
      return { ok: true, task: 'prune', ...(await prune(store, task, () => {}, NEVER, this.keys)) } as { ok: boolean };
    } finally {
      store.diesBefore = Number.POSITIVE_INFINITY;
      this.pruned.push({ task, ofCopies, before, after: new Map(store.objects) });
      const unchanged = (ofCopies ? this.first : this.second).objects;
      if (unchanged.size !== other.size) this.broken.push('a retention has changed the other location');
    }
  }

  /** Of the oldest or newest snapshot whose copy is pending. */
  async copy(newest: boolean): Promise<void> {
    const pending = this.runs.filter(isCopyPending);
    const run = newest ? pending.at(-1) : pending[0];
    const to = run?.spec.copyTo?.destination;
    if (!run || !to) return;
    const task = taskOf(copyJob(run, { cluster: aCluster(), image: 'operator:1', to }));
    if (task.task !== 'copy') throw new Error('no copy');
    const made = await copy(this.first, this.second, task, NEVER).then(
      ({ uri }) => ({ uri }),
      ({ reason, message }: AgentFailure) => ({ reason, message }),
    );
    this.runs = this.runs.map((each) => (each === run ? { ...run, status: { ...run.status, copy: made } } : each));
  }

  /** Ended Jobs are deleted by their TTL. */
  async hours(hours: number): Promise<void> {
    for (let i = 0; i < hours; i++) {
      this.now += HOUR;
      this.jobs = this.jobs.filter(
        ({ job }) => Date.parse(endOf(job)?.lastTransitionTime ?? '') > this.now - HOUR || !endOf(job),
      );
      await this.reconcile();
    }
  }
}

function taskOf(job: Job): Task {
  const [agent] = job.spec?.template.spec?.containers ?? [];
  return JSON.parse(agent?.env?.find(({ name }) => name === TASK_VARIABLE)?.value ?? '') as Task;
}
