/** What is wrong with an object by the structural schema of its CRD. CEL rules need an API server: integration tests ask one. */

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly default?: unknown;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
}

export type { Schema as StructuralSchema };

interface How {
  /** A part of a manifest: what it lacks is in the rest. */
  readonly partial?: boolean;
}

const typeOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value;
};

const fits = (schema: Schema, type: string): boolean => {
  if (schema['x-kubernetes-int-or-string']) return type === 'integer' || type === 'string';
  return schema.type === undefined || schema.type === type || (schema.type === 'number' && type === 'integer');
};

/** Where a document leaves out a part of a text, it writes … instead. */
function findText(schema: Schema, value: string, path: string): readonly string[] {
  if (value.includes('…')) return [];
  const found: string[] = [];
  if (schema.pattern !== undefined && !new RegExp(schema.pattern).test(value))
    found.push(`${path}: ${value} does not match ${schema.pattern}`);
  if (value.length < (schema.minLength ?? 0)) found.push(`${path} is too short`);
  if (value.length > (schema.maxLength ?? Number.POSITIVE_INFINITY)) found.push(`${path} is too long`);
  return found;
}

function findNumber(schema: Schema, value: number, path: string): readonly string[] {
  const [least, most] = [schema.minimum ?? Number.NEGATIVE_INFINITY, schema.maximum ?? Number.POSITIVE_INFINITY];
  return value < least || value > most ? [`${path}: ${value} is out of range`] : [];
}

function findObject(
  schema: Schema,
  value: Readonly<Record<string, unknown>>,
  path: string,
  how: How,
): readonly string[] {
  const { properties, additionalProperties: others, required = [] } = schema;
  const lacks = (name: string): boolean => !(name in value) && properties?.[name]?.default === undefined;
  const missing = how.partial ? [] : required.filter(lacks).map((name) => `${path}.${name} is missing`);
  const inside = Object.entries(value).flatMap(([name, inner]) => {
    const at = `${path}.${name}`;
    const own = properties?.[name] ?? (typeof others === 'object' ? others : undefined);
    if (own) return findings(own, inner, at, how);
    return others === true || schema['x-kubernetes-preserve-unknown-fields'] || (!properties && !others)
      ? []
      : [`${at} does not exist`];
  });
  return [...missing, ...inside];
}

export function findings(schema: Schema, value: unknown, path: string, how: How = {}): readonly string[] {
  if (!fits(schema, typeOf(value)))
    return [`${path} is of type ${typeOf(value)}, not ${schema.type ?? 'text or number'}`];
  if (schema.enum && !schema.enum.includes(value))
    return [`${path}: ${String(value)} is none of ${schema.enum.join(', ')}`];
  if (typeof value === 'string') return findText(schema, value, path);
  if (typeof value === 'number') return findNumber(schema, value, path);
  if (Array.isArray(value)) {
    const short = value.length < (schema.minItems ?? 0) ? [`${path} has too few entries`] : [];
    const { items } = schema;
    return [...short, ...(items ? value.flatMap((each, at) => findings(items, each, `${path}[${at}]`, how)) : [])];
  }
  if (typeof value !== 'object' || value === null) return [];
  return findObject(schema, value as Readonly<Record<string, unknown>>, path, how);
}
