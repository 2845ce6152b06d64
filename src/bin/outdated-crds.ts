/**
 * CRDs that are older than this operator, where they are managed apart from the chart. The API server drops the fields that they do
 * not have, without an error: what the operator records before it acts would be lost. The published OpenAPI schema tells, which
 * every ServiceAccount may read; to read CRDs takes a permission that the operator does not have.
 */
import { crds } from '../api/crds.ts';
import { GROUP, VERSION } from '../api/names.ts';
import type { Transport } from '../kube/transport.ts';
import { isObject } from '../lib/merge-patch.ts';
import { type Clock, sleep } from '../runtime/clock.ts';
import type { Logger } from '../runtime/log.ts';

type Schema = Readonly<Record<string, unknown>>;
const part = (schema: unknown, key: string): Schema => {
  const found = isObject(schema) ? schema[key] : undefined;
  return isObject(found) ? found : {};
};

/** The paths that the first schema has and the second has not; only the uppermost of a subtree. */
function lackedPaths(wanted: unknown, actual: unknown, path: string): readonly string[] {
  const properties = part(actual, 'properties');
  const inside = Object.entries(part(wanted, 'properties')).flatMap(([key, schema]) => {
    const at = path === '' ? key : `${path}.${key}`;
    return key in properties ? lackedPaths(schema, properties[key], at) : [at];
  });
  const below = ['items', 'additionalProperties'].flatMap((key) => {
    const schema = part(wanted, key);
    return Object.keys(schema).length === 0 ? [] : lackedPaths(schema, part(actual, key), `${path}[]`);
  });
  return [...inside, ...below];
}

/** More would only hide that all of them have one remedy. */
const NAMED = 3;

const kindIn = (schema: unknown): unknown => {
  const kinds = isObject(schema) ? schema['x-kubernetes-group-version-kind'] : undefined;
  return Array.isArray(kinds) && isObject(kinds[0]) ? kinds[0]['kind'] : undefined;
};

/** One sentence per CRD that is older. A kind that is not installed is reported as missing, not here. */
export function outdatedCRDs(openapi: unknown): readonly string[] {
  const published = Object.values(part(part(openapi, 'components'), 'schemas'));
  return crds.flatMap(({ metadata, spec }) => {
    const kind = part(spec, 'names')['kind'];
    const actual = published.find((schema) => kindIn(schema) === kind);
    const [version] = spec['versions'] as readonly unknown[];
    const wanted = part(part(version, 'schema'), 'openAPIV3Schema');
    const { spec: ofSpec, status: ofStatus } = part(wanted, 'properties');
    if (!actual) return [];
    const lacked = lackedPaths({ properties: { spec: ofSpec, status: ofStatus } }, actual, '');
    if (lacked.length === 0) return [];
    const others = lacked.length > NAMED ? ` and ${lacked.length - NAMED} others` : '';
    return [
      `the CustomResourceDefinition ${metadata.name} is older than this operator: it lacks ${lacked.slice(0, NAMED).join(', ')}${others}. Apply the CRDs of this version (crds.enabled=true, or the files in templates/crds of the chart). The operator acts as soon as they are there`,
    ];
  });
}

const RETRY_MS = 2_000;

/** Resolves when no CRD is older; `report` gets those that are. Without an answer the operator starts, as with an API server that publishes nothing. */
export async function whenCurrent(
  transport: Pick<Transport, 'json'>,
  { clock, log, signal }: { readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
  report: (outdated: readonly string[]) => void,
): Promise<void> {
  for (let before = ''; ; await sleep(clock, RETRY_MS, signal)) {
    signal.throwIfAborted();
    let outdated: readonly string[];
    try {
      const path = `/openapi/v3/apis/${GROUP}/${VERSION}`;
      outdated = outdatedCRDs(await transport.json(path, { signal, timeoutMs: 10_000 }));
    } catch (error) {
      log.warn({ error: String(error) }, 'whether the CRDs are those of this version is unknown');
      outdated = [];
    }
    report(outdated);
    if (outdated.length === 0) return;
    if (outdated.join() !== before) for (const sentence of outdated) log.error(sentence);
    before = outdated.join();
  }
}
