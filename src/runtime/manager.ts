/** What the process runs besides controllers: the caches, and the server of the probes and the metrics. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { KubeObject, Resource } from '../kube/object.ts';
import { ALL_NAMESPACES, type AnyStore, type Store } from '../kube/store.ts';
import { watch } from '../kube/watcher.ts';
import { type Clock, sleep } from './clock.ts';
import type { ControllerOptions } from './controller.ts';
import { missingCRD } from './health.ts';
import type { ApiServerHeartbeat } from './heartbeat.ts';

interface CacheOptions extends Pick<ControllerOptions, 'client' | 'clock' | 'log' | 'signal' | 'metrics'> {
  /** Notified of every watch event. */
  readonly heartbeat: ApiServerHeartbeat;
  /** Called when a watch loop ends before the signal: its cache would stay stale for ever. */
  readonly onDead: (kind: string, error: unknown) => void;
  /** The log line for an optional kind that cannot be read: its CRD is not installed, or the operator has no permission. */
  readonly whenMissing?: string;
  /** A kind that the operator works without when its roles do not grant it. */
  readonly mayBeForbidden?: boolean;
}

export const crdOf = ({ plural, group }: Resource): string => `${plural}.${group}`;

/** Keeps a store up to date until the signal. */
export function startCache<T extends KubeObject>(store: Store<T>, options: CacheOptions): void {
  const { client, clock, log, signal, metrics, heartbeat, whenMissing, mayBeForbidden } = options;
  const { selector, resource } = store;
  const { kind } = resource;
  for (const shard of store.shards)
    watch({
      client,
      signal,
      resource,
      ...(shard !== ALL_NAMESPACES && { namespace: shard }),
      ...(selector !== undefined && { selector }),
      ...(mayBeForbidden !== undefined && { mayBeForbidden }),
      emit: (event) => {
        heartbeat.responded();
        const before = store.missing;
        store.apply(shard, event);
        if (store.missing && !before && whenMissing !== undefined) log.warn({ kind }, whenMissing);
        else if (store.missing && !before) log.error({ kind }, missingCRD(crdOf(store.resource)));
        if (before && !store.missing) log.info({ kind }, 'the kind can be read now: continuing');
      },
      onError: (error) => log.warn({ kind, error: String(error) }, 'watch interrupted'),
      onRestart: (how) => metrics.watchRestarts.inc({ kind, how }),
      sleep: (ms, until) => sleep(clock, ms, until),
      random: () => clock.random(),
    }).catch((error: unknown) => options.onDead(kind, error));
}

/** A cache without which the operator works, and what it does then. */
export interface OptionalCache {
  readonly store: AnyStore;
  readonly whenMissing: string;
}

interface Caches {
  readonly stores: readonly AnyStore[];
  readonly optional: readonly OptionalCache[];
}

/** CRDs that are not installed and needed, for which the operator waits; and what it does without the other kinds that it cannot read. */
export function missingKinds({ stores, optional }: Caches): { readonly needed: string[]; readonly notes: string[] } {
  const needed = stores.filter((s) => s.missing && !optional.some(({ store }) => store === s));
  return {
    needed: needed.map((s) => crdOf(s.resource)),
    notes: optional.filter(({ store }) => store.missing).map(({ whenMissing }) => whenMissing),
  };
}

/** Resolves when every cache has received its first list, or is optional and cannot be read. */
export async function whenSynced({ stores, optional }: Caches, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!stores.every((s) => s.synced || (s.missing && optional.some(({ store }) => store === s)))) {
    await sleep(clock, 20, signal);
    signal.throwIfAborted();
  }
}

export type Page = () => { readonly code: number; readonly text: string } | Promise<{ code: number; text: string }>;

/** `:8080`, `127.0.0.1:8080`, `[::1]:8080`; `undefined` for `0` or an empty string, which turn the server off. */
export function parseAddress(address: string): { readonly host?: string; readonly port: number } | undefined {
  if (address === '' || address === '0') return undefined;
  const colon = address.lastIndexOf(':');
  const port = Number(address.slice(colon + 1));
  if (colon < 0 || !Number.isInteger(port) || port < 0 || port > 65_535)
    throw new Error(`${JSON.stringify(address)} is not an address: write host:port or :port`);
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  return host === '' ? { port } : { host, port };
}

/** Serves a few pages of plain text; resolves to the server once it listens, so that a taken port is an error at start. */
export async function serve(address: string, pages: Readonly<Record<string, Page>>): Promise<Server | undefined> {
  const where = parseAddress(address);
  if (!where) return undefined;
  const server = createServer((request, response) => {
    const page = pages[(request.url ?? '').split('?')[0] ?? ''];
    const respond = async (): Promise<void> => {
      const { code, text } = page ? await page() : { code: 404, text: 'no such page\n' };
      response.writeHead(code, { 'content-type': 'text/plain; charset=utf-8' }).end(text);
    };
    respond().catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(where.port, where.host, resolve);
  });
  return server;
}

export const portOf = (server: Server): number => (server.address() as AddressInfo).port;
