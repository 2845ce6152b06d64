/** The kubelets of all nodes: they run the etcd of each Pod from the Pod's own command line, and report its status. */
import { isPodReady } from '../../../src/domain/pod.ts';
import type { Pod } from '../../../src/gen/kube.ts';
import { pods } from '../../../src/kube/resources.ts';
import type { ModelEtcd } from '../model/etcd.ts';
import type { Group } from '../model/etcd-group.ts';
import { newDisk } from '../model/etcd-node.ts';
import { type EtcdFlags, isPulled, mayRestore, parseCommand, versionOf } from './command-line.ts';
import { type Ground, NAMESPACE } from './ground.ts';
import { Mounts, sourcesOf } from './mounts.ts';
import type { Nodes } from './nodes.ts';
import { type Bootstrap, type Ending, fatal, isHealthy, podStatus, preStopMs, type Run, restores } from './pod-run.ts';
import type { Disk, Volumes } from './volumes.ts';

/** A Secret that is missing is looked for again. */
const MOUNT_RETRY_MS = 2_000;
const FIRST_BACKOFF_MS = 10_000;
const MAX_BACKOFF_MS = 300_000;
const FORGIVEN_MS = 600_000;

export class Kubelet {
  readonly runs = new Map<string, Run>();
  readonly bootstraps: Bootstrap[] = [];
  readonly #ground: Ground;
  readonly #etcd: ModelEtcd;
  readonly #nodes: Nodes;
  readonly #volumes: Volumes;
  readonly mounts: Mounts;
  /** IPs of Pods on nodes without power: the next Pods that start get them. */
  readonly freed: string[] = [];
  #addresses = 0;
  /** Members that have had a Pod. */
  readonly #known = new Set<string>();

  constructor(ground: Ground, etcd: ModelEtcd, nodes: Nodes, volumes: Volumes) {
    this.#ground = ground;
    this.#etcd = etcd;
    this.#nodes = nodes;
    this.#volumes = volumes;
    this.mounts = new Mounts(ground);
  }

  #pod(run: Run): Pod | undefined {
    const pod = this.#ground.find(pods, run.name);
    return pod?.metadata.uid === run.uid ? pod : undefined;
  }

  sync(): void {
    const present = new Set<string>();
    for (const pod of this.#ground.api.peek(pods)) {
      const { uid = '' } = pod.metadata;
      present.add(uid);
      const run = this.runs.get(uid);
      if (!run) this.#adopt(pod);
      else if (pod.metadata.deletionTimestamp) this.#stop(run);
    }
    for (const run of this.runs.values()) {
      if (!present.has(run.uid)) this.#removeRun(run);
      else if (this.#nodes.isUp(run.node)) this.#look(run);
    }
  }

  #adopt(pod: Pod): void {
    const { uid = '', name = '', deletionTimestamp } = pod.metadata;
    const node = pod.spec?.nodeName;
    const over = pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
    if (node === undefined || !this.#nodes.isUp(node) || over) {
      // No kubelet runs it: it is removed as soon as it is deleted.
      if (deletionTimestamp && (over || node === undefined)) this.#ground.finishPod(name);
      return;
    }
    const claim = this.#volumes.claimOf(pod);
    const claimed = pod.spec?.volumes?.some((v) => v.persistentVolumeClaim);
    const volume = claimed ? this.#volumes.of(claim?.metadata.uid) : this.#volumes.memory(uid);
    if (!volume) return;
    const moved = this.#known.has(name);
    this.#known.add(name);
    const run: Run = {
      uid,
      name,
      node,
      ip: this.freed.shift() ?? this.#address(),
      moved,
      volume,
      process: undefined,
      prepared: 'no',
      unprepared: 0,
      state: 'starting',
      ready: false,
      restarts: 0,
      failures: 0,
      startedAt: 0,
      lastEnd: undefined,
      probing: false,
    };
    this.runs.set(uid, run);
    this.#ground.soon(50, 1_500, () => this.#start(run));
  }

  /** A Pod that ran before this world started: its etcd goes on with its data directory, and its probe has not failed. */
  takeOver(pod: Pod, disk: Disk | undefined): void {
    this.#adopt(pod);
    const run = this.runs.get(pod.metadata.uid ?? '');
    if (!run) return;
    run.volume.disk = disk;
    run.ready = isPodReady(pod);
    run.volume.voted ||= run.ready;
    this.#start(run);
  }

  #address(): string {
    const n = ++this.#addresses;
    return `10.${1 + (n >> 16)}.${(n >> 8) & 255}.${n & 255}`;
  }

  #mayStart({ state, node }: Run): boolean {
    return (state === 'starting' || state === 'ended') && this.#nodes.isUp(node);
  }

  #start(run: Run): void {
    const pod = this.#pod(run);
    if (!pod || !this.#mayStart(run)) return;
    if (!isPulled(pod) || !this.mounts.mount(run.uid, sourcesOf(pod), () => this.#nodes.isUp(run.node)))
      return this.#ground.soon(MOUNT_RETRY_MS, 3 * MOUNT_RETRY_MS, () => this.#start(run));
    if (restores(pod) && run.prepared !== 'done') return this.#prepare(run);
    if (run.lastEnd) run.restarts++;
    run.state = 'running';
    run.startedAt = this.#ground.timeline.now;
    const failed = this.#exec(run, pod);
    this.#report(run);
    if (failed) this.#exit(run, failed);
  }

  /** The init containers restore the snapshot, or fail and are restarted. */
  #prepare(run: Run): void {
    if (run.prepared === 'running') return;
    run.prepared = 'running';
    this.#report(run);
    const { timeline, random } = this.#ground;
    this.#ground.soon(200, 8_000, () => {
      const pod = this.#pod(run);
      if (run.prepared !== 'running' || !pod || !this.#mayStart(run)) return;
      const { trouble, destroyed, disk } = run.volume;
      // In a bootstrapped cluster the agent ends at once and writes nothing, so a full volume does not block it.
      const writes = mayRestore(pod) && !disk;
      const fails = destroyed || (writes && (trouble === 'full' || random.between(0, 9) < 2));
      run.prepared = fails ? 'failed' : 'done';
      this.#report(run);
      if (fails) {
        this.#ground.count('restore: failed');
        timeline.after(Math.min(FIRST_BACKOFF_MS * 2 ** run.unprepared++, MAX_BACKOFF_MS), () => this.#start(run));
        return;
      }
      this.#restore(run, pod);
      this.#start(run);
    });
  }

  /** Restores in one step, and only into an empty data directory. */
  #restore({ volume }: Run, pod: Pod): void {
    const flags = parseCommand(pod);
    if ('refused' in flags) return;
    const done = !volume.disk && mayRestore(pod);
    this.#ground.count(done ? 'restore: done' : 'restore: not again');
    if (!done) return;
    const { group, id } = this.#etcd.restored(flags);
    volume.disk = newDisk(group, id);
    this.#recordBootstrap(flags, group, true);
  }

  #recordBootstrap({ name, token }: EtcdFlags, group: Group, restored: boolean): void {
    this.#ground.tell(() => `${name} bootstraps a cluster${restored ? ' from a snapshot' : ''}`);
    this.bootstraps.push({ member: name, token, group, restored, at: this.#ground.timeline.now });
  }

  #exec(run: Run, pod: Pod): Ending | undefined {
    const { volume } = run;
    const flags = parseCommand(pod);
    if ('refused' in flags) return { exitCode: 2, reason: 'Error', message: flags.refused };
    if (volume.destroyed)
      return { exitCode: 1, reason: 'Error', message: fatal('cannot access data directory: input/output error') };
    if (volume.trouble === 'full')
      return {
        exitCode: 1,
        reason: 'Error',
        message: fatal('write /var/lib/etcd/member/wal: no space left on device'),
      };
    if (volume.trouble === 'damaged' && volume.disk)
      return { exitCode: 2, reason: 'Error', message: 'panic: wal: crc mismatch' };
    const { peerURL, maxLearners, quotaBytes, name } = flags;
    this.#drop(run);
    const process = this.#etcd.node(name, {
      endpoint: `${flags.tls.client.serves ? 'https' : 'http'}://${run.ip}:2379`,
      peerURL,
      tls: { ...this.mounts.tls(run.uid, flags.tls), ...(flags.peerAutoTls && { peerAutoTls: true }) },
      version: versionOf(pod),
      ...(maxLearners !== undefined && { maxLearners }),
      ...(quotaBytes !== undefined && { quotaBytes }),
    });
    run.process = process;
    process.disk = volume.disk;
    const bootstraps = volume.disk === undefined && flags.state === 'new';
    this.#etcd.start(process, flags);
    volume.disk = process.disk;
    this.#ground.tell(() => `etcd ${name} starts (${flags.state})${process.running ? '' : `: ${process.lastWords}`}`);
    if (bootstraps && process.disk) this.#recordBootstrap(flags, process.disk.group, false);
    return process.running ? undefined : { exitCode: 1, reason: 'Error', message: fatal(process.lastWords) };
  }

  #since(run: Run): string {
    const { timeline } = this.#ground;
    return new Date(timeline.date - (timeline.now - run.startedAt)).toISOString();
  }

  /** The container has ended; it is restarted with a growing back-off. */
  #exit(run: Run, ending: Ending): void {
    const { timeline, random } = this.#ground;
    if (run.state !== 'running') return;
    run.state = 'ended';
    run.ready = false;
    const startedAt = this.#since(run);
    run.lastEnd = { ...ending, startedAt, finishedAt: timeline.time };
    if (timeline.now - run.startedAt > FORGIVEN_MS) run.failures = 0;
    const pause = run.failures === 0 ? random.between(100, 1_000) : FIRST_BACKOFF_MS * 2 ** (run.failures - 1);
    run.failures++;
    this.#ground.tell(() => `etcd ${run.name} ended: ${ending.reason} ${ending.message}`);
    this.#report(run);
    timeline.after(Math.min(pause, MAX_BACKOFF_MS), () => this.#start(run));
  }

  /** What a kubelet observes: a process that has ended, and whether the probe succeeds. */
  #look(run: Run): void {
    const { process } = run;
    if (run.state !== 'running' || !process) return;
    if (!process.running) return this.#exit(run, { exitCode: 1, reason: 'Error', message: fatal(process.lastWords) });
    const healthy = isHealthy(process);
    if (healthy === run.ready || run.probing) return;
    run.probing = true;
    this.#ground.soon(healthy ? 0 : 2_000, healthy ? 1_000 : 3_000, () => {
      run.probing = false;
      if (run.state !== 'running' || !run.process || isHealthy(run.process) !== healthy || !this.#nodes.isUp(run.node))
        return;
      run.ready = healthy;
      run.volume.voted ||= healthy;
      this.#report(run);
    });
  }

  #stop(run: Run): void {
    if (run.state === 'stopping' || !this.#nodes.isUp(run.node)) return;
    run.state = 'stopping';
    const goesOnMs = preStopMs(this.#pod(run));
    this.#ground.soon(goesOnMs + 10, goesOnMs + 2_000, () => {
      if (!this.#nodes.isUp(run.node)) return void (run.state = 'ended');
      this.#drop(run);
      this.#ground.finishPod(run.name);
    });
  }

  /** The Pod object is deleted: its process and its memory are lost, too. */
  #removeRun(run: Run): void {
    if (!this.#nodes.isUp(run.node) && this.#nodes.get(run.node)?.state !== 'gone') return;
    this.#drop(run);
    this.mounts.unmount(run.uid);
    if (run.volume.claim === undefined) this.#volumes.destroy(run.volume);
    this.runs.delete(run.uid);
  }

  #drop(run: Run): void {
    const { process } = run;
    if (!process) return;
    run.process = undefined;
    this.#etcd.stop(process);
    this.#etcd.nodes.splice(this.#etcd.nodes.indexOf(process), 1);
  }

  /** The process ends, as by a signal or an error of its own. */
  kill(run: Run, ending: Ending): void {
    this.#drop(run);
    this.#exit(run, ending);
  }

  /** The whole Pod ends, as a node that shuts down leaves it. */
  end(run: Run, phase: 'Failed' | 'Succeeded'): void {
    this.#drop(run);
    run.state = 'over';
    run.ready = false;
    if (run.volume.claim === undefined) this.#volumes.destroy(run.volume);
    this.#report(run, phase);
  }

  /** The node loses power: nothing is reported. */
  powerOff(node: string): void {
    for (const run of this.runs.values())
      if (run.node === node) {
        this.#drop(run);
        this.mounts.unmount(run.uid);
        if (run.volume.claim === undefined && run.volume.disk) run.volume.disk = undefined; // memory is lost
        if (run.state === 'running') run.state = 'ended';
        run.ready = false;
      }
  }

  /** Cut off from the network, or reachable again. */
  isolate(node: string, isolated: boolean): void {
    for (const run of this.runs.values())
      if (run.node === node && run.process) this.#etcd.isolate(run.process, isolated);
  }

  /** After a node came back: reports what it finds, and starts what should run. */
  resume(node: string): void {
    for (const run of this.runs.values()) {
      if (run.node !== node || run.state === 'over') continue;
      run.prepared = 'no';
      run.ready &&= run.process !== undefined && isHealthy(run.process); // it has gone on probing while it was cut off
      if (!run.process && this.#isTaken(run)) run.ip = this.#address(); // a Pod gets a new sandbox when its node starts
      if (run.state === 'ended' || run.state === 'starting') {
        run.lastEnd ??= {
          exitCode: 255,
          reason: 'Unknown',
          message: '',
          startedAt: this.#ground.timeline.time,
          finishedAt: this.#ground.timeline.time,
        };
        this.#ground.soon(500, 5_000, () => this.#start(run));
      }
      this.#report(run);
    }
  }

  #isTaken({ uid, ip }: Run): boolean {
    return this.freed.includes(ip) || [...this.runs.values()].some((other) => other.ip === ip && other.uid !== uid);
  }

  #report(run: Run, over?: 'Failed' | 'Succeeded'): void {
    const pod = this.#pod(run);
    if (!this.#nodes.isUp(run.node) || !pod) return;
    const times = { now: this.#ground.timeline.time, since: this.#since(run) };
    this.#ground.patchStatus(pods, { namespace: NAMESPACE, name: run.name }, { ...podStatus(run, pod, times, over) });
  }
}
