/** An API server with our CRDs (or others), to test what it accepts. No kubelet, no operator. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CustomResourceDefinition } from '../../../src/api/crd.ts';
import { crds } from '../../../src/api/crds.ts';
import { API_VERSION } from '../../../src/api/names.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { HttpClient } from '../../../src/kube/http-client.ts';
import { type KubeObject, pathOf, type Resource } from '../../../src/kube/object.ts';
import { removeFolder } from '../kubelet/pod-run.ts';
import { startControlPlane } from './control-plane.ts';
import { Processes } from './processes.ts';

/** Our kinds, as far as the API server cares. */
export type Written = KubeObject & { readonly spec: object; readonly status?: Readonly<Record<string, unknown>> };

export interface Api {
  readonly admin: HttpClient;
  /** Of the administrator. */
  readonly kubeconfig: string;
  /** A new namespace that admits only Pods of the restricted level. */
  namespace(): Promise<string>;
  /** Unknown fields are errors, as with kubectl. */
  create<T extends KubeObject>(resource: Resource<T>, object: T, dryRun?: boolean): Promise<T>;
  replace<T extends KubeObject>(resource: Resource<T>, object: T, dryRun?: boolean): Promise<T>;
  replaceStatus<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T>;
  stop(): Promise<void>;
}

export async function startApi(definitions: readonly CustomResourceDefinition[] = crds): Promise<Api> {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-operator-api-'));
  const processes = new Processes(folder);
  const stop = async (): Promise<void> => {
    await processes.stopAll();
    removeFolder(folder);
  };
  const { admin } = await startControlPlane(processes, folder, { definitions }).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  const query = (dryRun: boolean) => ({ fieldValidation: 'Strict', ...(dryRun && { dryRun: 'All' }) });
  const at = (resource: Resource, { metadata }: KubeObject, part = ''): string =>
    pathOf(resource, metadata.namespace, metadata.name) + part;
  let namespaces = 0;
  return {
    admin,
    kubeconfig: join(folder, 'admin.kubeconfig'),
    namespace: async () => {
      const name = `api-${++namespaces}`;
      const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
      await admin.transport.json('/api/v1/namespaces', { method: 'POST', body: { metadata: { name, labels } } });
      return name;
    },
    create: (resource, object, dryRun = false) =>
      admin.transport.json(pathOf(resource, object.metadata.namespace), {
        method: 'POST',
        body: object,
        query: query(dryRun),
      }),
    replace: (resource, object, dryRun = false) =>
      admin.transport.json(at(resource, object), { method: 'PUT', body: object, query: query(dryRun) }),
    replaceStatus: (resource, object) =>
      admin.transport.json(at(resource, object, '/status'), { method: 'PUT', body: object }),
    stop: async () => {
      await admin.transport.close();
      await stop();
    },
  };
}

export const written = (resource: Resource, namespace: string, name: string, spec: object): Written => ({
  apiVersion: API_VERSION,
  kind: resource.kind,
  metadata: { name, namespace },
  spec,
});

/** The error of the API server: `undefined` when it accepts. Anything but a refusal fails the test. */
export async function refusalOf(asked: Promise<unknown>): Promise<string | undefined> {
  try {
    await asked;
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && [400, 403, 422].includes(error.code)) return error.serverMessage;
    throw error;
  }
}
