/** What a Pod mounts of the Secrets of its cluster: it stands in the Pod's spec, which cannot be changed. */
import type { EtcdPortName } from '../../api/names.ts';
import type { Pod } from '../../gen/kube.ts';
import type { Mount } from './view.ts';

export function mountIn(pod: Pod, part: EtcdPortName): Mount | undefined {
  const volume = pod.spec?.volumes?.find(({ name }) => name === `tls-${part}`);
  if (!volume) return undefined;
  const from = (path: string): string | undefined =>
    volume.projected?.sources?.find(({ secret }) => secret?.items?.some((item) => item.path === path))?.secret?.name;
  const bundle = from('ca.crt');
  return { leaf: from('tls.crt') ?? volume.secret?.secretName ?? '', ...(bundle !== undefined && { bundle }) };
}

export interface Mounted {
  /** There is a Pod. */
  readonly running: boolean;
  /** Every member that is to run has one: nobody starts just now with what was recorded before. */
  readonly complete: boolean;
  /** Names of Secrets, each once. */
  readonly bundles: Readonly<Record<EtcdPortName, readonly string[]>>;
}

export const NOTHING_MOUNTED: Mounted = { running: false, complete: true, bundles: { client: [], peer: [] } };
