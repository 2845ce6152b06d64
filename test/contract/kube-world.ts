/** The two implementations of the client port behind one interface: a real API server, and the model that simulations use. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiError } from '../../src/kube/errors.ts';
import type { HttpClient } from '../../src/kube/http-client.ts';
import { pathOf, type Ref } from '../../src/kube/object.ts';
import { pods } from '../../src/kube/resources.ts';
import { ModelApiServer } from '../sim/model/kube.ts';
import type { KubectlClient } from '../support/kubectl/client.ts';
import { compact, startControlPlane } from '../support/servers/control-plane.ts';
import { eventually, Processes } from '../support/servers/processes.ts';

export interface KubeWorld {
  readonly client: KubectlClient;
  /** A namespace that no other test uses. */
  namespace(): Promise<string>;
  /** Runs the garbage collector; a real one runs by itself. */
  collectGarbage(): Promise<void>;
  /** Runs the disruption controller; a real one runs by itself. */
  countDisruptions(): Promise<void>;
  /** The process of a Pod that is being deleted has ended: reports it as its kubelet does. */
  finishPod(ref: Ref): Promise<void>;
  /** Lets watches idle until they get a bookmark. A real server sends one before it ends a watch. */
  idle(): Promise<void>;
  /** A resourceVersion from which no watch can start any more. */
  ancientVersion(): Promise<string>;
  close(): Promise<void>;
}

export async function modelWorld(): Promise<KubeWorld> {
  const client = new ModelApiServer();
  let namespaces = 0;
  return {
    client,
    namespace: () => Promise.resolve(`n${++namespaces}`),
    collectGarbage: async () => {
      await client.collectGarbage();
    },
    countDisruptions: async () => void client.countDisruptions(),
    finishPod: async (ref) => client.finishPod(pods, ref),
    idle: async () => client.log.sendBookmarks(),
    ancientVersion: () => {
      client.log.compact();
      return Promise.resolve('1');
    },
    close: () => Promise.resolve(),
  };
}

export async function realWorld(): Promise<KubeWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-contract-'));
  const processes = new Processes(folder);
  const close = async (): Promise<void> => {
    await processes.stopAll();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const { admin, apiServer } = await startControlPlane(processes, folder);
    let namespaces = 0;
    return {
      client: admin,
      namespace: async () => {
        const name = `contract-${++namespaces}`;
        await admin.transport.json('/api/v1/namespaces', { method: 'POST', body: { metadata: { name } } });
        return name;
      },
      collectGarbage: () => Promise.resolve(),
      countDisruptions: () => Promise.resolve(),
      finishPod: async (ref) => {
        const body = { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 };
        await admin.transport.json(pathOf(pods, ref.namespace, ref.name), { method: 'DELETE', body });
      },
      idle: () => Promise.resolve(),
      ancientVersion: async () => {
        await apiServer.kill(); // its watch cache keeps more than its etcd does
        await compact(apiServer.etcdUrl);
        await apiServer.start();
        await eventually('the caches of the server', () => isReady(admin)); // until then the server asks a watch to retry later
        return '1';
      },
      close: async () => {
        await admin.transport.close();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Whether its watch caches are ready. */
async function isReady({ transport }: HttpClient): Promise<true> {
  const body = await transport.stream('/readyz', { signal: AbortSignal.timeout(5_000) });
  await body.dump();
  return true;
}

/** The error of a call that must fail. */
export async function refusal(call: Promise<unknown>): Promise<ApiError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('the call was accepted');
}
