/**
 * A kubelet for agents: the Pods of Jobs run as local processes, with their Secrets and volumes below a folder in place of
 * `/`. Their termination message is truncated as Kubernetes does it.
 */
import { join } from 'node:path';
import { AGENT_COMPONENT, AGENT_OF_LABEL, COMPONENT_LABEL } from '../../../src/api/names.ts';
import type { ContainerState, Pod } from '../../../src/gen/kube.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { pods } from '../../../src/kube/resources.ts';
import { watch } from '../../../src/kube/watcher.ts';
import { root } from '../../../tools/paths.ts';
import { type Kubelet, remove } from '../kubelet/kubelet.ts';
import { bind, insist, quiet, refOf } from '../kubelet/pod-run.ts';
import { type Ended, placeOf } from './agent-place.ts';
import { type Child, type Processes, pause } from './processes.ts';

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

  /** From now on, an agent for which this returns a result does not run at all; the promise may stay pending. */
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
    await remove(this.#site.client, pod, this.#site.kubelet.stopped);
  }

  async #run(pod: Pod): Promise<void> {
    await bind(this.#site.client, pod, this.#site.kubelet.stopped);
    await this.#report(pod, 'Running', { running: { startedAt: now() } });
    const { exitCode, message } = await (this.#instead(pod) ?? this.#process(pod));
    const reason = exitCode === 0 ? 'Completed' : 'Error';
    const terminated = { exitCode, reason, finishedAt: now(), ...(message !== undefined && { message }) };
    await this.#report(pod, exitCode === 0 ? 'Succeeded' : 'Failed', { terminated });
  }

  async #process(pod: Pod): Promise<Ended> {
    const { folder, client, processes, kubelet } = this.#site;
    const { uid = '', namespace = '', labels } = pod.metadata;
    const { env, ended } = await placeOf(client, folder, pod, 'agent', () => kubelet.stopped.aborted);
    const { args = [] } = pod.spec?.containers[0] ?? {};
    const program = [join(root, 'src', 'bin', 'agent.ts'), ...args];
    const around = kubelet.around(namespace, labels?.[AGENT_OF_LABEL] ?? '', process.execPath, program);
    const child = processes.start(pod.metadata.name ?? 'agent', ...around, env);
    this.#running.set(uid, child);
    const exitCode = (await child.ended) ?? 137;
    this.#running.delete(uid);
    return ended(exitCode);
  }

  async #report(pod: Pod, phase: string, state: ContainerState): Promise<void> {
    const { name = '', image = '' } = pod.spec?.containers[0] ?? {};
    const container = { name, image, imageID: image, ready: phase === 'Running', restartCount: 0, state };
    const { client, kubelet } = this.#site;
    const body = {
      metadata: { uid: pod.metadata.uid },
      status: { phase, startTime: now(), containerStatuses: [container] },
    };
    await insist(kubelet.stopped, () => client.patch(pods, refOf(pod), body, { subresource: 'status' }));
  }
}

const now = (): string => new Date().toISOString();
