import { describe, expect, test } from 'vitest';
import { pathOf } from './object.ts';
import { nodes, secrets } from './resources.ts';

describe('S1: a name in an object never leads to another path than that of an object in its namespace', () => {
  test.each(['..', '.', '', 'a/b', '../other/secrets/x', 'a%2Fb', 'x%2fproxy'])('%j is refused', (name) => {
    expect(() => pathOf(secrets, 'ns', name)).toThrow('is not a name');
    expect(() => pathOf(nodes, '', name)).toThrow('is not a name');
  });
  test.each(['..', 'a/b', '%2e%2e'])('and so is the namespace %j', (namespace) => {
    expect(() => pathOf(secrets, namespace, 'x')).toThrow('is not a name');
  });
  test('a name is one segment of the path, whatever else it has', () => {
    expect(pathOf(secrets, 'ns', 'a?b#c')).toBe('/api/v1/namespaces/ns/secrets/a%3Fb%23c');
    expect(pathOf(secrets, 'ns')).toBe('/api/v1/namespaces/ns/secrets');
  });
});
