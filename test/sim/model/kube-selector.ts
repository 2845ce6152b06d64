/** Label selectors, as far as the operator uses them: `a=b`, `a!=b`, `a`, `!a`, joined by commas. */
import type { KubeObject } from '../../../src/kube/object.ts';

export function labelsMatch(object: KubeObject, selector: string | undefined): boolean {
  if (selector === undefined || selector === '') return true;
  const labels = object.metadata.labels ?? {};
  return selector.split(',').every((part) => {
    const [, not, key = '', operator, value] = /^(!?)([^!=]+)(!?==?)?(.*)$/.exec(part.trim()) ?? [];
    if (operator === undefined) return not === '!' ? !(key in labels) : key in labels;
    return operator.startsWith('!') ? labels[key] !== value : labels[key] === value;
  });
}

/** Field selectors: `a.b=c`, joined by commas. */
export const fieldsMatch = (object: KubeObject, selector: string | undefined): boolean =>
  (selector ?? '')
    .split(',')
    .filter((part) => part !== '')
    .every((part) => {
      const [path = '', wanted = ''] = part.split('=');
      const found = path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown>)?.[key], object);
      return (found ?? '') === wanted;
    });
