/**
 * Secrets in Pods: a kubelet mounts them by name when a Pod starts, and updates the files within two minutes after a change. A Secret
 * that is deleted leaves the files as they are, and a Pod that starts waits for it.
 */
import type { EtcdPortName } from '../../../src/api/names.ts';
import type { Pod, Secret } from '../../../src/gen/kube.ts';
import { secrets } from '../../../src/kube/resources.ts';
import type { NodeTls } from '../model/etcd-tls.ts';
import type { EtcdFlags } from './command-line.ts';
import type { Ground } from './ground.ts';

/** Files of one Secret: each key becomes a file at a path. */
export interface Source {
  readonly secret: string;
  readonly files: Readonly<Record<string, string>>;
}

interface Mounted {
  readonly sources: readonly Source[];
  /** Whether the kubelet runs and reaches the API server. */
  readonly isUp: () => boolean;
  readonly files: Map<string, string>;
  /** By Secret, the resourceVersion of the files. */
  readonly versions: Map<string, string | undefined>;
  readonly pending: Set<string>;
}

const FIRST_UPDATE_MS = 500;
/** Less than the operator's default of `--rotation-grace`. */
const LAST_UPDATE_MS = 110_000;
const RETRY_MS = 5_000;

export const textIn = (secret: Secret | undefined, key: string): string =>
  Buffer.from(secret?.data?.[key] ?? '', 'base64').toString();

/** The certificates that the Pod of a member mounts, at paths such as `client/tls.crt`. */
export const sourcesOf = ({ spec }: Pod): readonly Source[] =>
  (spec?.volumes ?? []).flatMap(({ name, secret, projected }) => {
    const part = /^tls-(.+)$/.exec(name)?.[1];
    if (part === undefined) return [];
    const at = (keys: readonly string[]) => Object.fromEntries(keys.map((key) => [key, `${part}/${key}`]));
    if (secret) return [{ secret: secret.secretName ?? '', files: at(['tls.crt', 'tls.key', 'ca.crt']) }];
    return (projected?.sources ?? []).flatMap(({ secret: one }) =>
      one ? [{ secret: one.name ?? '', files: at((one.items ?? []).map(({ key }) => key)) }] : [],
    );
  });

export class Mounts {
  readonly #ground: Ground;
  readonly #mounted = new Map<string, Mounted>();

  constructor(ground: Ground) {
    this.#ground = ground;
  }

  /** False while a Secret is missing. */
  mount(uid: string, sources: readonly Source[], isUp: () => boolean): boolean {
    if (sources.length === 0 || this.#mounted.has(uid)) return true;
    const found = sources.map(({ secret }) => this.#ground.find(secrets, secret));
    if (found.includes(undefined)) return false;
    const mounted: Mounted = { sources, isUp, files: new Map(), versions: new Map(), pending: new Set() };
    for (const [i, source] of sources.entries()) copy(mounted, source, found[i]);
    this.#mounted.set(uid, mounted);
    return true;
  }

  /** The Pod is deleted, or its node has lost power: its files were in memory. */
  unmount(uid: string): void {
    this.#mounted.delete(uid);
  }

  read(uid: string, path: string): string | undefined {
    return this.#mounted.get(uid)?.files.get(path);
  }

  /** etcd loads its CA bundles now, and reads its certificates at every handshake. */
  tls(uid: string, flags: EtcdFlags['tls']): NodeTls {
    const at = (part: EtcdPortName): NodeTls => {
      if (!flags[part].serves) return {};
      const bundle = flags[part].verifies ? (this.read(uid, `${part}/ca.crt`) ?? '') : undefined;
      const leaf = (): string => this.read(uid, `${part}/tls.crt`) ?? '';
      return { [part]: { leaf, ...(bundle !== undefined && { bundle }) } };
    };
    return { ...at('client'), ...at('peer') };
  }

  /** Schedules the updates of changed Secrets. */
  sync(): void {
    if (this.#mounted.size === 0) return;
    const all = new Map(this.#ground.api.peek(secrets).map((secret) => [secret.metadata.name, secret]));
    for (const mounted of this.#mounted.values())
      for (const source of mounted.sources) {
        const version = all.get(source.secret)?.metadata.resourceVersion;
        const isCurrent = version === undefined || version === mounted.versions.get(source.secret);
        if (isCurrent || mounted.pending.has(source.secret)) continue;
        mounted.pending.add(source.secret);
        this.#ground.soon(FIRST_UPDATE_MS, LAST_UPDATE_MS, () => this.#update(mounted, source));
      }
  }

  #update(mounted: Mounted, source: Source): void {
    if (![...this.#mounted.values()].includes(mounted)) return;
    if (!mounted.isUp()) return this.#ground.soon(RETRY_MS, 2 * RETRY_MS, () => this.#update(mounted, source));
    mounted.pending.delete(source.secret);
    this.#ground.changedAt = this.#ground.timeline.now;
    copy(mounted, source, this.#ground.find(secrets, source.secret));
  }
}

function copy({ files, versions }: Mounted, { secret, files: paths }: Source, found: Secret | undefined): void {
  if (!found) return;
  versions.set(secret, found.metadata.resourceVersion);
  for (const [key, path] of Object.entries(paths)) files.set(path, textIn(found, key));
}
