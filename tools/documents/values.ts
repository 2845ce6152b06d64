/** The values of the chart, by their path. */
import { parse } from 'yaml';
import { read } from './pages.ts';

export const values = parse(read('charts/etcd-operator/values.yaml')) as Readonly<Record<string, unknown>>;

/** Below a map or a list that is empty, a user may set what Kubernetes knows; so too below one that another object defines. */
const isOpen = (value: unknown): boolean =>
  value === null || (typeof value === 'object' && Object.keys(value).length === 0);
const FROM_KUBERNETES = /^(podSecurityContext|manager\.resources|kubeRbacProxy\.resources)\./;

export function isValue(path: string): boolean {
  if (FROM_KUBERNETES.test(path)) return true;
  let value: unknown = values;
  for (const name of path.replaceAll(/\[\d+\]|\{.*\}$/g, '').split(/(?<!\\)\./)) {
    if (isOpen(value)) return value !== null;
    if (typeof value !== 'object' || value === null || !(name in value)) return false;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return true;
}

/** What `--set`, `--set-string` and `--set-json` name: `a.b=1,c=2`. */
export const setPaths = (words: readonly string[]): readonly string[] =>
  words.flatMap((word, at) => {
    const [, inline] = /^--set(?:-string|-json)?=(.*)$/.exec(word) ?? [];
    const given = inline ?? (/^--set(-string|-json)?$/.test(word) ? words[at + 1] : undefined);
    return given === undefined ? [] : [...given.matchAll(/(?:^|,)([\w.[\]\\-]+)=/g)].map(([, path = '']) => path);
  });
