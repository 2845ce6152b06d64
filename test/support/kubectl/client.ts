/** The operator's client plus what only users of kubectl do: evict Pods, and scale. */
import type { Client, Preconditions } from '../../../src/kube/client.ts';
import { isNotFound } from '../../../src/kube/errors.ts';
import { HttpClient } from '../../../src/kube/http-client.ts';
import { pathOf, type Ref, type Resource } from '../../../src/kube/object.ts';
import { pods } from '../../../src/kube/resources.ts';

/** What the real client and the model have in common. */
export interface KubectlClient extends Client {
  /** Evicts a Pod: unlike a deletion, a PodDisruptionBudget can refuse it (429). */
  evict(ref: Ref, preconditions: Preconditions): Promise<void>;
  /** Sets the replicas of anything with a scale subresource. */
  scale(resource: Resource, ref: Ref, replicas: number): Promise<void>;
}

export class HttpKubectlClient extends HttpClient implements KubectlClient {
  async evict(ref: Ref, preconditions: Preconditions): Promise<void> {
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: ref, deleteOptions: { preconditions } };
    const path = `${pathOf(pods, ref.namespace, ref.name)}/eviction`;
    await this.transport.json(path, { method: 'POST', body }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }

  async scale(resource: Resource, ref: Ref, replicas: number): Promise<void> {
    const path = `${pathOf(resource, ref.namespace, ref.name)}/scale`;
    const body = { spec: { replicas } };
    await this.transport.json(path, { method: 'PATCH', body, contentType: 'application/merge-patch+json' });
  }
}
