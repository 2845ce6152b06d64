/**
 * Reads objects for the journeys over one connection. A `kubectl get` per poll took more than a third of the two cores:
 * every kubectl process loads its caches and makes a TLS connection of its own.
 */

import { HttpClient } from '../../../src/kube/http-client.ts';
import { identityFromKubeconfig } from '../../../src/kube/kubeconfig.ts';
import type { KubeObject, Resource } from '../../../src/kube/object.ts';
import { pathOf } from '../../../src/kube/object.ts';
import {
  events,
  jobs,
  persistentVolumeClaims,
  podDisruptionBudgets,
  pods,
  secrets,
  services,
} from '../../../src/kube/resources.ts';
import { Transport } from '../../../src/kube/transport.ts';

const BUILT_IN: Readonly<Record<string, Resource>> = {
  pod: pods,
  pods,
  pvc: persistentVolumeClaims,
  persistentvolumeclaims: persistentVolumeClaims,
  service: services,
  services,
  secret: secrets,
  secrets,
  job: jobs,
  jobs,
  pdb: podDisruptionBudgets,
  events,
  deployment: { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment' },
};
const VERSIONS: Readonly<Record<string, string>> = {
  'etcd-operator.cozystack.io': 'v1alpha2',
  'cert-manager.io': 'v1',
};

/** The resource for a name that kubectl would accept. */
function resourceOf(name: string): Resource {
  const builtIn = BUILT_IN[name];
  if (builtIn) return builtIn;
  const [plural = '', ...group] = name.split('.');
  const version = VERSIONS[group.join('.')];
  if (version !== undefined) return { group: group.join('.'), version, plural, kind: plural };
  throw new Error(`kube-reader.ts does not know the kind ${name}: add a row`);
}

class KubeReader {
  readonly #client: HttpClient;
  constructor(kubeconfig: string) {
    const monotonic = (): number => performance.now();
    this.#client = new HttpClient(new Transport(identityFromKubeconfig(kubeconfig, {}, monotonic)));
  }

  async list(kind: string, namespace: string, labels: readonly string[]): Promise<readonly KubeObject[]> {
    const found: KubeObject[] = [];
    for await (const { items } of this.#client.pages(resourceOf(kind), { namespace, selector: labels.join(',') }))
      found.push(...items);
    return found;
  }

  /** Rejects when there is no such object, as kubectl does. */
  get(kind: string, namespace: string, name: string): Promise<KubeObject> {
    return this.#client.transport.json<KubeObject>(pathOf(resourceOf(kind), namespace, name));
  }
}

const readers = new Map<string, KubeReader>();

/** One per cluster and test process, which ends with the process. */
export function readerOf({ kubeconfig }: { readonly kubeconfig: string }): KubeReader {
  const reader = readers.get(kubeconfig) ?? new KubeReader(kubeconfig);
  readers.set(kubeconfig, reader);
  return reader;
}
