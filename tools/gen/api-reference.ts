/** The API reference for users, from the same schemas as the CRDs. */
import type { CelRule } from '../../src/api/cel.ts';
import type { Kind, PrinterColumn } from '../../src/api/crd.ts';
import { kinds } from '../../src/api/crds.ts';
import { etcdMemberKind } from '../../src/api/etcd-member.ts';
import { API_VERSION } from '../../src/api/names.ts';
import { templateFields } from '../../src/api/template.ts';

export interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-validations'?: readonly CelRule[];
}

/** Fields of a Pod: the documentation of Kubernetes describes them, and they are too long to repeat. */
const AS_IN_A_POD = ['affinity', 'topologySpreadConstraints', 'tolerations'];
const code = (value: unknown): string => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
const cell = (text: string): string => text.replaceAll('|', String.raw`\|`).replaceAll('\n', ' ');

/** Nothing but a name: one row is enough. */
const isReference = (schema: Schema): boolean =>
  Object.keys(schema.properties ?? {}).join() === 'name' && schema.properties?.['name']?.default === '';

function typeOf(schema: Schema): string {
  if (isReference(schema)) return 'reference';
  if (schema['x-kubernetes-int-or-string']) return 'quantity';
  if (schema.type === 'array') return `${typeOf(schema.items ?? {})}[]`;
  if (schema.type === 'object' && schema.additionalProperties) return `map of ${typeOf(schema.additionalProperties)}`;
  return schema.type ?? 'any';
}

function boundsOf(schema: Schema): readonly string[] {
  const { enum: values, minimum, maximum, minLength, maxLength, minItems, maxItems, maxProperties, pattern } = schema;
  return [
    ...(values ? [values.map((v) => (v === '' ? '`""`' : code(v))).join(' or ')] : []),
    ...(minimum === undefined ? [] : [`at least ${minimum}`]),
    ...(maximum === undefined ? [] : [`at most ${maximum}`]),
    ...(minLength === undefined ? [] : ['not empty']),
    ...(maxLength === undefined ? [] : [`at most ${maxLength} characters`]),
    ...(minItems === undefined ? [] : [`at least ${minItems}`]),
    ...(maxItems === undefined ? [] : [`at most ${maxItems}`]),
    ...(maxProperties === undefined ? [] : [`at most ${maxProperties}`]),
    ...(pattern === undefined || schema['x-kubernetes-int-or-string'] ? [] : [`matches ${code(pattern)}`]),
  ];
}

interface Found {
  readonly rows: string[];
  readonly rules: { readonly path: string; readonly message: string }[];
}

/** The constraints of a field itself, without those of its content. */
const rulesOf = (schema: Schema): Schema => ({
  ...schema,
  properties: {},
  ...(schema.items && { items: { ...schema.items, properties: {} } }),
});

function walk(schema: Schema, path: string, found: Found, depth = 0): void {
  for (const { message } of schema['x-kubernetes-validations'] ?? []) found.rules.push({ path, message });
  const inner = schema.type === 'array' ? (schema.items ?? {}) : schema;
  if (inner !== schema)
    for (const { message } of inner['x-kubernetes-validations'] ?? []) found.rules.push({ path: `${path}[]`, message });
  for (const { message } of inner.additionalProperties?.['x-kubernetes-validations'] ?? [])
    found.rules.push({ path: `${path}.*`, message });
  const prefix = schema.type === 'array' ? `${path}[].` : path === '' ? '' : `${path}.`;
  for (const [name, field] of Object.entries(inner.properties ?? {})) {
    const at = `${prefix}${name}`;
    const leaf = field.items?.properties ? field.items : field;
    const start = field.default === undefined ? '' : code(field.default === '' ? '""' : field.default);
    const required = inner.required?.includes(name) ? '**Required.**' : '';
    const bounds = boundsOf(field).join(', ');
    const remarks = [
      field.description ?? leaf.description,
      required,
      bounds && `${bounds[0]?.toUpperCase()}${bounds.slice(1)}.`,
    ];
    found.rows.push(
      `| \`${at}\` | ${cell(typeOf(field))} | ${cell(start)} | ${cell(remarks.filter(Boolean).join(' '))} |`,
    );
    const leave = (depth === 0 && AS_IN_A_POD.includes(name)) || isReference(leaf);
    walk(leave ? rulesOf(field) : field, at, found, depth + 1);
  }
}

function table(title: string, schema: Schema): { readonly text: string; readonly rules: Found['rules'] } {
  const found: Found = { rows: [], rules: [] };
  walk(schema, '', found);
  const head = '| field | type | default | |\n|---|---|---|---|';
  return { text: `### ${title}\n\n${head}\n${found.rows.join('\n')}\n`, rules: found.rules };
}

const columns = (list: readonly PrinterColumn[]): string => {
  const [narrow, wide] = [list.filter((c) => !c.priority), list.filter((c) => c.priority)];
  const names = (of: readonly PrinterColumn[]): string => of.map((c) => c.name).join(', ');
  return `${names(narrow)}, Age${wide.length > 0 ? `; with \`-o wide\` also ${names(wide)}` : ''}`;
};

function section(kind: Kind): string {
  const { names } = kind;
  const plain = (schema: unknown): Schema => JSON.parse(JSON.stringify(schema)) as Schema;
  const spec = table('spec', kind === etcdMemberKind ? withoutCopies(plain(kind.spec)) : plain(kind.spec));
  const status = table('status', withoutTarget(plain(kind.status)));
  const rules = [...(kind.rules ?? []).map(({ message }) => ({ path: '', message })), ...spec.rules].map(
    ({ path, message }) =>
      `- ${path === '' || message.startsWith(path.replace('[]', '')) ? '' : `\`${path}\`: `}${message}`,
  );
  return `## ${names.kind}

${kind.description} Short name \`${names.shortNames.join('`, `')}\`; columns ${columns(kind.columns)}${kind.scaledReplicas ? '; `kubectl scale` works' : ''}.
Example: [examples/${names.singular}.yaml](examples/${names.singular}.yaml).

${spec.text}
${rules.length > 0 ? `What is refused, and in these words, or the same with the value in it:\n\n${[...new Set(rules)].join('\n')}\n` : ''}
${status.text}`;
}

const COPIES = ['storage', 'tls', 'restore'];

/** A member's template repeats the spec of its cluster: one row refers to it. */
function withoutCopies(spec: Schema): Schema {
  const own = Object.entries(spec.properties ?? {}).filter(
    ([name]) => !(name in templateFields) && !COPIES.includes(name),
  );
  const copies: Schema = {
    type: 'object',
    description: 'The other fields of a cluster’s members, as they were when this one was made.',
  };
  return { ...spec, properties: { ...Object.fromEntries(own), '…': copies } };
}

/** The latched target repeats the spec: one row refers to it. */
function withoutTarget(status: Schema): Schema {
  const { observed, ...properties } = status.properties ?? {};
  const target: Schema = { type: 'object', description: 'The accepted target: the spec with every default filled in.' };
  return { ...status, properties: { ...properties, ...(observed && { observed: target }) } };
}

/** The whole of \`docs/api.md\`. */
export const generateApiReference = (): string => `<!-- Made by "./dev gen" from src/api. Do not edit. -->

# API reference

Group and version \`${API_VERSION}\`. \`kubectl get etcd\` lists objects of every kind.
Why the fields are as they are, and which are still to come: [api-design.md](api-design.md).

Fields called "as in a Pod" are those of Kubernetes, with the same names and meaning; they are checked as strictly as in a Pod.
A quantity is a number with a unit, such as \`500m\` or \`1Gi\`. A reference is an object with a \`name\`, of something in the same namespace.

${kinds.map(section).join('\n')}`;
