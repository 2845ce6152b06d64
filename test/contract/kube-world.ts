/** The two implementations of the client port, behind one door: a real API server, and the model that simulations run on. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '../../src/kube/client.ts';
import { ApiError } from '../../src/kube/errors.ts';
import type { HttpClient } from '../../src/kube/http-client.ts';
import { pathOf, type Ref } from '../../src/kube/object.ts';
import { pods } from '../../src/kube/resources.ts';
import { ModelApiServer } from '../sim/model/kube.ts';
import { compact, startControlPlane } from '../support/servers/control-plane.ts';
import { eventually, Processes } from '../support/servers/processes.ts';

export interface KubeWorld {
  readonly client: Client;
  /** A namespace that nobody else uses. */
  namespace(): Promise<string>;
  /** Gives the garbage collector its turn; a real one needs no asking. */
  collectGarbage(): Promise<void>;
  /** Gives the disruption controller its turn; a real one needs no asking. */
  countDisruptions(): Promise<void>;
  /** The process of a Pod that is to go has ended: what its kubelet says then. */
  finishPod(ref: Ref): Promise<void>;
  /** Nothing has happened for a while: whoever follows is told so. A real server does it before it ends a watch. */
  idle(): Promise<void>;
  /** A version from which nobody can follow any more. */
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
        await apiServer.kill(); // it remembers more than its etcd does
        await compact(apiServer.etcdUrl);
        await apiServer.start();
        await eventually('the caches of the server', () => isReady(admin)); // until then a watch is asked to come back later
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

/** Whether it has all that it serves watches from. */
async function isReady({ transport }: HttpClient): Promise<true> {
  const body = await transport.stream('/readyz', { signal: AbortSignal.timeout(5_000) });
  await body.dump();
  return true;
}

/** What was said to a call that must not succeed. */
export async function refusal(call: Promise<unknown>): Promise<ApiError> {
  try {
    await call;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('was accepted');
}
