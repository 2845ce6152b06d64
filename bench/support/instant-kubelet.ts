/** A kubelet without latency: a created Pod is running and ready at once, and its etcd is scripted. */
import { CLUSTER_LABEL, peerURL } from '../../src/api/names.ts';
import type { Pod } from '../../src/gen/kube.ts';
import type { HttpClient } from '../../src/kube/http-client.ts';
import { keyOf } from '../../src/kube/object.ts';
import { pods } from '../../src/kube/resources.ts';
import { watch } from '../../src/kube/watcher.ts';
import { podStatus } from '../../test/support/kubelet/pod-process.ts';
import { pause } from '../../test/support/servers/processes.ts';
import type { ScriptedEtcd } from './scripted-etcd.ts';

export type PodEvent = (key: string, is: 'created' | 'deleted') => void;

export class InstantKubelet {
  readonly #client: HttpClient;
  readonly #etcd: ScriptedEtcd;
  readonly #stop = new AbortController();
  readonly #known = new Map<string, string>();
  readonly #addresses = new Map<string, string>();
  readonly #listeners = new Set<PodEvent>();

  constructor(client: HttpClient, etcd: ScriptedEtcd) {
    this.#client = client;
    this.#etcd = etcd;
    void watch({
      client,
      resource: pods,
      signal: this.#stop.signal,
      emit: (event) => {
        if (event.type === 'put') this.#onPod(event.object);
        else if (event.type === 'delete') this.#deleted(event.object);
      },
      onError: () => undefined,
      sleep: pause,
      random: Math.random,
    });
  }

  on(listener: PodEvent): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  stop(): void {
    this.#stop.abort();
  }

  #onPod(pod: Pod): void {
    const key = keyOf(pod);
    const uid = pod.metadata.uid ?? '';
    if (this.#known.get(key) === uid || pod.metadata.deletionTimestamp !== undefined) return;
    this.#known.set(key, uid);
    for (const listener of this.#listeners) listener(key, 'created');
    void this.#run(pod).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) process.stderr.write(`${key}: ${String(error)}\n`);
    });
  }

  async #run(pod: Pod): Promise<void> {
    const { namespace = '', name = '', labels } = pod.metadata;
    const cluster = labels?.[CLUSTER_LABEL] ?? '';
    const podIP =
      this.#addresses.get(keyOf(pod)) ?? this.#etcd.seat(`${namespace}/${cluster}`, peerURL(name, cluster, namespace));
    this.#addresses.set(keyOf(pod), podIP);
    this.#etcd.start(podIP, name);
    const at = new Date().toISOString();
    const running = { running: { startedAt: at } };
    const status = podStatus(pod, { podIP, startedAt: at, ready: true, readySince: at, restarts: 0, state: running });
    await this.#client.patch(pods, { namespace, name }, { status }, { subresource: 'status' });
  }

  #deleted(pod: Pod): void {
    const key = keyOf(pod);
    if (this.#known.get(key) !== pod.metadata.uid) return;
    this.#known.delete(key);
    for (const listener of this.#listeners) listener(key, 'deleted');
    const address = this.#addresses.get(key);
    if (address !== undefined && !this.#known.has(key)) this.#etcd.stop(address);
  }
}
