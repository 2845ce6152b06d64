/**
 * TypeScript types of the Kubernetes kinds that the operator uses, from the OpenAPI v3 documents of a Kubernetes release.
 * Read-only and structural; timestamps are strings, as on the wire; `apiVersion` and `kind` are literals.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fetching } from '../fetching.ts';
import { root } from '../paths.ts';
import { run } from '../process.ts';

const MODULE = 'k8s.io/kubernetes@v1.36.3';

/** The kinds that the operator uses; the types that they refer to are added. */
const ROOTS: readonly (readonly [document: string, kinds: readonly string[]])[] = [
  [
    'api__v1',
    [
      'core.v1.Pod',
      'core.v1.Service',
      'core.v1.Secret',
      'core.v1.PersistentVolumeClaim',
      'core.v1.PersistentVolume',
      'core.v1.Node',
    ],
  ],
  ['apis__batch__v1', ['batch.v1.Job']],
  ['apis__coordination.k8s.io__v1', ['coordination.v1.Lease']],
  ['apis__events.k8s.io__v1', ['events.v1.Event']],
  ['apis__networking.k8s.io__v1', ['networking.v1.NetworkPolicy']],
  ['apis__policy__v1', ['policy.v1.PodDisruptionBudget']],
  ['apis__rbac.authorization.k8s.io__v1', ['rbac.v1.PolicyRule']],
];
const STATUS = 'io.k8s.apimachinery.pkg.apis.meta.v1.Status';

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly $ref?: string;
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
}
type Schemas = Readonly<Record<string, Schema>>;

/** Finds the module's folder in Go's cache, and downloads it when it is missing. */
async function documentsFolder(): Promise<string> {
  const cwd = join(root, 'local', 'build', 'kubernetes');
  const { stdout } = await fetching(() => run('go', ['mod', 'download', '-json', MODULE], { cwd }));
  const { Dir } = JSON.parse(stdout) as { readonly Dir: string };
  return join(Dir, 'api', 'openapi-spec', 'v3');
}

async function readSchemas(folder: string): Promise<Schemas> {
  const all: Record<string, Schema> = {};
  for (const [document] of ROOTS) {
    const text = await readFile(join(folder, `${document}_openapi.json`), 'utf8');
    Object.assign(all, (JSON.parse(text) as { components: { schemas: Schemas } }).components.schemas);
  }
  return all;
}

const lastPart = (text: string, separator: string): string => text.slice(text.lastIndexOf(separator) + 1);

/** Prints the given schemas and all that they refer to, sorted by name. */
export function printTypes(schemas: Schemas, kinds: readonly string[]): string {
  const printed = new Map<string, string>();
  const origin = new Map<string, string>();
  const waiting = [...kinds];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const short = lastPart(name, '.');
    const known = origin.get(short);
    if (known === name) continue;
    if (known !== undefined) throw new Error(`${known} and ${name} would both be called ${short}`);
    origin.set(short, name);
    const schema = schemas[name];
    if (!schema) throw new Error(`no schema is called ${name}`);
    const type = typeOf(schema, 0, (referred) => waiting.push(referred));
    printed.set(short, schema.properties ? `export interface ${short} ${type}` : `export type ${short} = ${type};`);
  }
  return [...printed]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, text]) => text)
    .join('\n\n');
}

function typeOf(schema: Schema, depth: number, refer: (name: string) => void): string {
  if (schema.$ref !== undefined) {
    const name = lastPart(schema.$ref, '/');
    refer(name);
    return lastPart(name, '.');
  }
  if (schema.allOf?.length === 1 && schema.allOf[0]) return typeOf(schema.allOf[0], depth, refer);
  if (schema.oneOf) return schema.oneOf.map((one) => typeOf(one, depth, refer)).join(' | ');
  const type = schema.type ?? 'unknown';
  switch (type) {
    case 'string':
    case 'boolean':
      return type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array': {
      const item = typeOf(schema.items ?? {}, depth, refer);
      return `readonly ${/[ |]/.test(item) ? `(${item})` : item}[]`;
    }
    case 'object':
      if (schema.properties) return bodyOf(schema, schema.properties, depth, refer);
      return typeof schema.additionalProperties === 'object'
        ? `Readonly<Record<string, ${typeOf(schema.additionalProperties, depth, refer)}>>`
        : 'Readonly<Record<string, unknown>>';
    default:
      return 'unknown';
  }
}

function bodyOf(
  schema: Schema,
  properties: NonNullable<Schema['properties']>,
  depth: number,
  refer: (name: string) => void,
): string {
  const kind = schema['x-kubernetes-group-version-kind']?.[0];
  const rows = Object.entries(properties).map(([key, value]) => {
    const name = /^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key);
    if (kind && key === 'apiVersion') return `apiVersion: '${kind.group ? `${kind.group}/` : ''}${kind.version}'`;
    if (kind && key === 'kind') return `kind: '${kind.kind}'`;
    const required = schema.required?.includes(key) || (kind && key === 'metadata');
    return `${name}${required ? '' : '?'}: ${typeOf(value, depth + 1, refer)}`;
  });
  const pad = '  '.repeat(depth + 1);
  return `{\n${rows.map((row) => `${pad}readonly ${row};\n`).join('')}${'  '.repeat(depth)}}`;
}

/** The whole of `src/gen/kube.ts`. */
export async function generateKubeTypes(): Promise<string> {
  const schemas = await readSchemas(await documentsFolder());
  const kinds = ROOTS.flatMap(([, names]) => names.map((name) => `io.k8s.api.${name}`));
  return `// Generated by tools/gen/kube-types.ts from ${MODULE}. Do not edit.\n\n${printTypes(schemas, [...kinds, STATUS])}\n`;
}
