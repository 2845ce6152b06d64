/**
 * A kubelet for agents: the Pods that the Job controller makes run as local processes, with their Secrets and volumes below a
 * folder that stands for `/`. What they leave as termination message is kept as Kubernetes keeps it.
 */
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AGENT_COMPONENT, AGENT_OF_LABEL, COMPONENT_LABEL } from '../../src/api/names.ts';
import type { ContainerState, Pod } from '../../src/gen/kube.ts';
import type { HttpClient } from '../../src/kube/http-client.ts';
import { persistentVolumeClaims, pods } from '../../src/kube/resources.ts';
import { watch } from '../../src/kube/watcher.ts';
import { root } from '../../tools/paths.ts';
import { type Kubelet, remove } from './kubelet.ts';
import { environment } from './pod-process.ts';
import { bind, quiet, refOf } from './pod-run.ts';
import { mountSecrets } from './pod-secrets.ts';
import { type Child, eventually, type Processes, pause } from './processes.ts';

/** How an agent ended. */
export interface Ended {
  readonly exitCode: number;
  readonly message?: string;
}

/** What a kubelet keeps of a file; who writes to the API server itself is not bound to it. */
const KEPT_BYTES = 4_096;

export interface Site {
  readonly client: HttpClient;
  readonly processes: Processes;
  readonly folder: string;
  readonly kubelet: Kubelet;
}

export class AgentRuns {
  readonly #site: Site;
  readonly #seen = new Set<string>();
  readonly #running = new Map<string, Child>();
  #instead: (pod: Pod) => Promise<Ended> | undefined = () => undefined;

  constructor(site: Site) {
    this.#site = site;
    void watch({
      client: site.client,
      resource: pods,
      signal: site.kubelet.stopped,
      emit: (event) => {
        if (event.type === 'put') this.#onPod(event.object);
      },
      onError: quiet,
      sleep: (ms) => pause(ms),
      random: Math.random,
    });
  }

  /** From now on, an agent of which this says how it ends does not run at all; it may end never. */
  instead(how: (pod: Pod) => Promise<Ended> | undefined): void {
    this.#instead = how;
  }

  #onPod(pod: Pod): void {
    const { uid = '', labels, deletionTimestamp } = pod.metadata;
    if (labels?.[COMPONENT_LABEL] !== AGENT_COMPONENT) return;
    if (deletionTimestamp !== undefined) void this.#end(pod).catch(quiet);
    else if (!this.#seen.has(uid)) {
      this.#seen.add(uid);
      void this.#run(pod).catch(quiet);
    }
  }

  async #end(pod: Pod): Promise<void> {
    await this.#running.get(pod.metadata.uid ?? '')?.stop();
    await remove(this.#site.client, pod);
  }

  async #run(pod: Pod): Promise<void> {
    await bind(this.#site.client, pod);
    await this.#report(pod, 'Running', { running: { startedAt: now() } });
    const { exitCode, message } = await (this.#instead(pod) ?? this.#process(pod));
    const reason = exitCode === 0 ? 'Completed' : 'Error';
    const terminated = { exitCode, reason, finishedAt: now(), ...(message !== undefined && { message }) };
    await this.#report(pod, exitCode === 0 ? 'Succeeded' : 'Failed', { terminated });
  }

  async #process(pod: Pod): Promise<Ended> {
    const { folder, client, processes, kubelet } = this.#site;
    const { uid = '', namespace = '', labels } = pod.metadata;
    const place = join(folder, 'agents', uid);
    mkdirSync(place, { recursive: true });
    const over = (): boolean => kubelet.stopped.aborted;
    const mounts = { ...(await mountSecrets(client, folder, pod, over)), ...(await this.#volumes(pod)) };
    for (const [path, target] of Object.entries(mounts)) {
      mkdirSync(dirname(join(place, path)), { recursive: true });
      symlinkSync(target, join(place, path));
    }
    const result = join(place, 'termination-log');
    const env = { ...process.env, ...environment(pod, ''), AGENT_ROOT: place, AGENT_RESULT: result };
    const { args = [] } = pod.spec?.containers[0] ?? {};
    const program = [join(root, 'src', 'bin', 'agent.ts'), ...args];
    const around = kubelet.around(namespace, labels?.[AGENT_OF_LABEL] ?? '', process.execPath, program);
    const child = processes.start(pod.metadata.name ?? 'agent', ...around, env);
    this.#running.set(uid, child);
    const exitCode = (await child.ended) ?? 137;
    this.#running.delete(uid);
    const text = existsSync(result) ? readFileSync(result).subarray(0, KEPT_BYTES).toString() : undefined;
    return { exitCode, ...(text !== undefined && { message: text }) };
  }

  /** By the path in the container, the folder of a claim. */
  async #volumes(pod: Pod): Promise<Readonly<Record<string, string>>> {
    const { client, folder } = this.#site;
    const { namespace } = refOf(pod);
    const found: Record<string, string> = {};
    for (const { name, persistentVolumeClaim: claim } of pod.spec?.volumes ?? []) {
      const path = pod.spec?.containers[0]?.volumeMounts?.find((mount) => mount.name === name)?.mountPath;
      if (!claim || path === undefined) continue;
      const ref = { namespace, name: claim.claimName };
      const { metadata } = await eventually(`the claim ${ref.name}`, () => client.get(persistentVolumeClaims, ref));
      found[path] = join(folder, 'volumes', metadata.uid ?? '');
      mkdirSync(found[path], { recursive: true });
    }
    return found;
  }

  async #report(pod: Pod, phase: string, state: ContainerState): Promise<void> {
    const { name = '', image = '' } = pod.spec?.containers[0] ?? {};
    const container = { name, image, imageID: image, ready: phase === 'Running', restartCount: 0, state };
    const body = { status: { phase, startTime: now(), containerStatuses: [container] } };
    await this.#site.client.patch(pods, refOf(pod), body, { subresource: 'status' });
  }
}

const now = (): string => new Date().toISOString();
