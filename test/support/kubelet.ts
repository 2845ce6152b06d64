/**
 * A kubelet in a few lines: each member Pod's own command line runs as a local process on its own 127.x.y.z address.
 * No image, no network, no root; volumes are folders that live as long as their claim.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from '../../src/gen/kube.ts';
import { isNotFound } from '../../src/kube/errors.ts';
import type { HttpClient } from '../../src/kube/http-client.ts';
import { keyOf, pathOf, type Ref } from '../../src/kube/object.ts';
import { persistentVolumeClaims, pods } from '../../src/kube/resources.ts';
import { watch } from '../../src/kube/watcher.ts';
import { type Child, eventually, type Processes, pause } from './processes.ts';

interface Running {
  readonly pod: Pod;
  readonly address: string;
  child: Child | undefined;
  ready: boolean;
  stopping: boolean;
}

export interface Kubelet {
  /** Stops taking care of Pods; their processes are ended with all others. */
  stop(): void;
  /** Where the etcd of a Pod listens. */
  addressOf(namespace: string, pod: string): string | undefined;
  /** While held, no Pod is started: as on a cluster without a free node. */
  hold(held: boolean): void;
}

const NODE = 'loopback';
const POLL_MS = 50;
const RESTART_MS = 300;

export function startKubelet(client: HttpClient, processes: Processes, folder: string, etcd: string): Kubelet {
  const running = new Map<string, Running>();
  const stop = new AbortController();
  const base = `127.${1 + Math.floor(Math.random() * 250)}.${Math.floor(Math.random() * 250)}`;
  let addresses = 0;
  let held = false;
  const waiting = new Map<string, Pod>();

  const begin = async (pod: Pod): Promise<void> => {
    const run: Running = { pod, address: `${base}.${++addresses}`, child: undefined, ready: false, stopping: false };
    running.set(pod.metadata.uid ?? '', run);
    await bind(client, pod);
    const data = await dataFolder(client, folder, pod);
    await patchStatus(client, run);
    while (!run.stopping && !stop.signal.aborted) {
      run.child = processes.start(pod.metadata.name ?? 'pod', etcd, rewritten(pod, run.address, data));
      await Promise.race([run.child.ended, watchReadiness(client, run, stop.signal)]);
      await run.child.ended;
      if (run.ready && !run.stopping && !stop.signal.aborted) await setReady(client, run, false);
      await pause(RESTART_MS);
    }
  };
  const end = async (pod: Pod, gone: boolean): Promise<void> => {
    const run = running.get(pod.metadata.uid ?? '');
    if (run && !run.stopping) {
      run.stopping = true;
      await run.child?.stop();
      running.delete(pod.metadata.uid ?? '');
    }
    if (!gone) await remove(client, pod);
  };
  const onPod = (pod: Pod): void => {
    const known = running.has(pod.metadata.uid ?? '');
    if (pod.metadata.deletionTimestamp !== undefined) void end(pod, false).catch(quiet);
    else if (held) waiting.set(pod.metadata.uid ?? '', pod);
    else if (!known && pod.spec?.containers[0]?.command?.[0] === 'etcd') void begin(pod).catch(quiet);
  };
  void watch({
    client,
    resource: pods,
    signal: stop.signal,
    emit: (event) => {
      if (event.type === 'put') onPod(event.object);
      else if (event.type === 'delete') void end(event.object, true).catch(quiet);
    },
    onError: quiet,
    sleep: (ms) => pause(ms),
    random: Math.random,
  });
  return {
    stop: () => stop.abort(),
    addressOf: (namespace, name) =>
      [...running.values()].find((r) => keyOf(r.pod) === `${namespace}/${name}` && !r.stopping)?.address,
    hold: (value) => {
      held = value;
      const pods_ = [...waiting.values()];
      waiting.clear();
      if (!held) for (const pod of pods_) onPod(pod);
    },
  };
}

/** What fails because a test is over, or because a Pod went away in the middle, is nobody's concern. */
const quiet = (): void => {};

const refOf = (pod: Pod): Ref => ({ namespace: pod.metadata.namespace ?? '', name: pod.metadata.name ?? '' });

/** From here on a delete is graceful: the Pod stays until its process has ended. */
async function bind(client: HttpClient, pod: Pod): Promise<void> {
  if (pod.spec?.nodeName) return;
  const { namespace, name } = refOf(pod);
  await client.transport.json(`${pathOf(pods, namespace, name)}/binding`, {
    method: 'POST',
    body: { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace }, target: { kind: 'Node', name: NODE } },
  });
}

/** A claim keeps its folder for as long as it lives; a new claim of the same name starts empty. */
async function dataFolder(client: HttpClient, folder: string, pod: Pod): Promise<string> {
  const claim = pod.spec?.volumes?.find((v) => v.name === 'data')?.persistentVolumeClaim?.claimName;
  const { namespace } = refOf(pod);
  const owner = claim
    ? await eventually(`the claim ${claim}`, () => client.get(persistentVolumeClaims, { namespace, name: claim }))
    : pod;
  const path = join(folder, 'volumes', owner.metadata.uid ?? '');
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}

function rewritten(pod: Pod, address: string, data: string): readonly string[] {
  const [, ...args] = pod.spec?.containers[0]?.command ?? [];
  return args.map((arg) =>
    arg.startsWith('--listen-')
      ? arg.replace('0.0.0.0', address)
      : arg.startsWith('--data-dir=')
        ? arg.replace('/var/lib/etcd', data)
        : arg,
  );
}

async function watchReadiness(client: HttpClient, run: Running, signal: AbortSignal): Promise<void> {
  let over = false;
  void run.child?.ended.then(() => {
    over = true;
  });
  while (!over && !signal.aborted && !run.stopping) {
    const ready = await fetch(`http://${run.address}:2381/readyz`, { signal: AbortSignal.timeout(1000) }).then(
      (answer) => answer.ok,
      () => false,
    );
    if (ready !== run.ready && !run.stopping) await setReady(client, run, ready);
    await pause(POLL_MS);
  }
}

const setReady = (client: HttpClient, run: Running, ready: boolean): Promise<void> => {
  run.ready = ready;
  return patchStatus(client, run);
};

async function patchStatus(client: HttpClient, run: Running): Promise<void> {
  const status = run.ready ? 'True' : 'False';
  const now = new Date().toISOString();
  const condition = (type: string, value: string) => ({ type, status: value, lastTransitionTime: now });
  const body = {
    status: {
      phase: 'Running',
      podIP: run.address,
      podIPs: [{ ip: run.address }],
      startTime: now,
      conditions: [condition('PodScheduled', 'True'), condition('ContainersReady', status), condition('Ready', status)],
    },
  };
  await client.patch(pods, refOf(run.pod), body, { subresource: 'status' });
}

async function remove(client: HttpClient, pod: Pod): Promise<void> {
  const { namespace, name } = refOf(pod);
  const body = { preconditions: { uid: pod.metadata.uid }, gracePeriodSeconds: 0 };
  await client.transport.json(pathOf(pods, namespace, name), { method: 'DELETE', body }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}

export const removeFolder = (folder: string): void => rmSync(folder, { recursive: true, force: true });
