/**
 * Every process of a local cluster runs in one cgroup of ours, so the kernel itself keeps the list of what to end:
 * no process is searched by name, and none escapes, not even a container shim that outlived its containerd.
 */
import { type Dirent, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from '../tools/terminal.ts';

const MOUNT = '/sys/fs/cgroup';
const isV2 = (): boolean => existsSync(join(MOUNT, 'cgroup.controllers'));

/** The roots of the hierarchies that a kubelet uses: one on cgroup v2; on v1 one per controller, and runc uses a v2 mount beside them too. */
function hierarchies(): readonly string[] {
  if (isV2()) return [MOUNT];
  return readdirSync(MOUNT)
    .map((name) => join(MOUNT, name))
    .filter((path) => existsSync(join(path, 'cgroup.procs')));
}

/** The hierarchy that lists our processes. */
const ledger = (): string => (isV2() ? MOUNT : join(MOUNT, 'pids'));

export const cgroupPath = (...parts: readonly string[]): string => join(ledger(), ...parts);

/** Creates the group in every hierarchy, ready to hold kubelets' groups. */
export function createCgroup(...parts: readonly string[]): void {
  for (const hierarchy of hierarchies()) {
    let path = hierarchy;
    for (const part of parts) {
      path = join(path, part);
      mkdirSync(path, { recursive: true });
      if (isV2()) delegate(join(path, '..'));
      else inheritCpuset(path);
    }
  }
}

/** On v2 a child has only the controllers that its parent passes on. */
function delegate(parent: string): void {
  for (const controller of readFileSync(join(parent, 'cgroup.controllers'), 'utf8').trim().split(/\s+/))
    try {
      writeFileSync(join(parent, 'cgroup.subtree_control'), `+${controller}`);
    } catch {
      // this host does not delegate the controller; kubelet reports it if it needs it
    }
}

/** On v1 a new cpuset group is empty, and nothing can run in an empty one. */
function inheritCpuset(path: string): void {
  for (const file of ['cpuset.cpus', 'cpuset.mems'])
    if (existsSync(join(path, file)) && readFileSync(join(path, file), 'utf8').trim() === '')
      writeFileSync(join(path, file), readFileSync(join(path, '..', file)));
}

/** The process ids in the group and in all groups below it. */
export function processesIn(...parts: readonly string[]): readonly number[] {
  return [cgroupPath(...parts), ...descendants(cgroupPath(...parts))].flatMap((path) => {
    try {
      return readFileSync(join(path, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean).map(Number);
    } catch {
      return []; // a group that was removed meanwhile has no processes
    }
  });
}

/** The process ids of one Pod, whose group kubelet names after its UID, somewhere below the node's. */
export const processesOfPod = (root: string, node: string, uid: string): readonly number[] =>
  descendants(cgroupPath(root, node))
    .filter((path) => basename(path) === `pod${uid}`)
    .flatMap((path) => processesIn(relative(cgroupPath(), path)));

/** Deepest first. */
function descendants(path: string): readonly string[] {
  return entriesOf(path)
    .filter((entry) => entry.isDirectory())
    .flatMap((entry) => [...descendants(join(path, entry.name)), join(path, entry.name)]);
}

/** Empty for a group that does not exist, also when it is removed meanwhile: kubelet removes those of Pods. */
function entriesOf(path: string): readonly Dirent[] {
  try {
    return readdirSync(path, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Ends every process of the group. New ones may appear while we kill (a shim starting a container), hence the loop. */
export async function killAll(...parts: readonly string[]): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const pids = processesIn(...parts);
    if (pids.length === 0) return;
    for (const pid of pids)
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // it has ended by itself
      }
    await sleep(50);
  }
  throw new Failure(
    `Processes ${processesIn(...parts).join(', ')} of the local cluster do not end (stuck in the kernel): reboot, then run ./dev down again.`,
  );
}

/** Removes the group and all groups below it from every hierarchy, and kills what still runs in them. */
export async function removeCgroup(...parts: readonly string[]): Promise<void> {
  for (const hierarchy of hierarchies()) {
    const path = join(hierarchy, ...parts);
    for (const group of [...descendants(path), path]) await removeGroup(group, parts);
  }
}

/** The kernel reports a group as busy for a moment after its last process ended; a process that a killed `up` started may join it only now. */
async function removeGroup(path: string, parts: readonly string[]): Promise<void> {
  for (let attempt = 0; existsSync(path); attempt++)
    try {
      rmdirSync(path);
    } catch (error) {
      if (attempt === 100) throw error;
      await killAll(...parts);
      await sleep(20);
    }
}

export const cgroupExists = (...parts: readonly string[]): boolean => existsSync(cgroupPath(...parts));
