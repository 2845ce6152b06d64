/** The Kubernetes objects in a document: its blocks of YAML, and what it feeds to `kubectl apply -f -`. */
import { parseAllDocuments } from 'yaml';
import { crds } from '../../src/api/crds.ts';
import { API_VERSION } from '../../src/api/names.ts';
import { blocksOf } from './pages.ts';
import { hereDocumentsOf } from './shell.ts';
import { findings, type StructuralSchema } from './structural-schema.ts';

export interface Manifest {
  readonly line: number;
  readonly object: Readonly<Record<string, unknown>>;
}

export function objectsIn(yaml: string): readonly Readonly<Record<string, unknown>>[] {
  const documents = parseAllDocuments(yaml);
  const list = Array.isArray(documents) ? documents : [];
  return list.flatMap((document) => {
    if (document.errors[0]) throw document.errors[0];
    const object = document.toJS() as Readonly<Record<string, unknown>> | null;
    return object === null ? [] : [object];
  });
}

export function manifestsOf(text: string): readonly Manifest[] {
  const blocks = blocksOf(text).filter(({ language }) => language === 'yaml');
  const fed = hereDocumentsOf(text).filter((document) => /^\s*(apiVersion|spec):/m.test(document.text));
  return [...blocks, ...fed].flatMap(({ text: yaml, line }) => objectsIn(yaml).map((object) => ({ line, object })));
}

interface CrdSpec {
  readonly names: { readonly kind: string };
  readonly versions: readonly [{ readonly schema: { readonly openAPIV3Schema: StructuralSchema } }];
}
const schemas = new Map(
  crds.map((crd) => {
    const { names, versions } = crd.spec as unknown as CrdSpec;
    return [names.kind, versions[0].schema.openAPIV3Schema] as const;
  }),
);

/** A piece that begins with `spec:` is of an EtcdCluster, and may leave out the rest. Objects of other groups are not ours to judge. */
export function wrongIn(object: Readonly<Record<string, unknown>>): readonly string[] {
  const { apiVersion, kind, metadata, ...rest } = object;
  if (kind === undefined && apiVersion === undefined) {
    const schema = 'spec' in object ? schemas.get('EtcdCluster') : undefined;
    return schema ? findings(schema, rest, 'EtcdCluster', { partial: true }) : [];
  }
  if (!String(apiVersion).startsWith('etcd-operator.cozystack.io/')) return [];
  if (apiVersion !== API_VERSION) return [`${String(apiVersion)} is not ${API_VERSION}`];
  const schema = schemas.get(String(kind));
  if (!schema) return [`there is no kind ${String(kind)}`];
  const { name } = (metadata ?? {}) as { readonly name?: unknown };
  const unnamed = typeof name === 'string' ? [] : [`${String(kind)} has no name`];
  return [...unnamed, ...findings(schema, rest, String(kind))];
}
