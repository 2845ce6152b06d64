import { expect, test } from 'vitest';
import { printTypes } from './kube-types.ts';

test('a kind gets literal apiVersion and kind, a required metadata, and everything it refers to', () => {
  const schemas = {
    'io.k8s.api.x.v1.Thing': {
      type: 'object',
      properties: {
        apiVersion: { type: 'string' },
        kind: { type: 'string' },
        metadata: { allOf: [{ $ref: '#/components/schemas/io.k8s.meta.v1.Meta' }] },
        ports: { type: 'array', items: { oneOf: [{ type: 'string' }, { type: 'integer' }] } },
        'k8s-key': { type: 'object', additionalProperties: { type: 'string' } },
      },
      'x-kubernetes-group-version-kind': [{ group: 'x', version: 'v1', kind: 'Thing' }],
    },
    'io.k8s.meta.v1.Meta': { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  };
  expect(printTypes(schemas, ['io.k8s.api.x.v1.Thing'])).toMatchInlineSnapshot(`
    "export interface Meta {
      readonly name: string;
    }

    export interface Thing {
      readonly apiVersion: 'x/v1';
      readonly kind: 'Thing';
      readonly metadata: Meta;
      readonly ports?: readonly (string | number)[];
      readonly "k8s-key"?: Readonly<Record<string, string>>;
    }"
  `);
});

test('two schemas that would get one name are refused', () => {
  const schemas = { 'a.v1.Same': { type: 'string' }, 'b.v1.Same': { type: 'string' } };
  expect(() => printTypes(schemas, ['a.v1.Same', 'b.v1.Same'])).toThrow('would both be called Same');
});
