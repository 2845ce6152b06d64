import { expect, test } from 'vitest';
import { nameCall } from './call-name.ts';

test.each([
  ['GET', '/api/v1/pods', {}, 'list pods /'],
  ['GET', '/api/v1/pods', { watch: 'true' }, 'watch pods /'],
  ['GET', '/api/v1/namespaces/n/pods/p', {}, 'get pods n/p'],
  ['GET', '/api/v1/namespaces/n', {}, 'get namespaces /n'],
  ['POST', '/api/v1/namespaces/n/pods', {}, 'create pods n/'],
  ['POST', '/api/v1/namespaces/n/pods', { dryRun: 'All' }, 'dryRun pods n/'],
  ['POST', '/api/v1/namespaces/n/pods/p/eviction', {}, 'create pods/eviction n/p'],
  ['PATCH', '/apis/g.io/v1/namespaces/n/things/t/status', {}, 'patch things/status n/t'],
  ['DELETE', '/apis/g.io/v1/namespaces/n/things/t', {}, 'delete things n/t'],
  ['GET', '/version', {}, 'get /version /'],
])('%s %s', (method, path, query, words) => {
  const { verb, resource, namespace, name } = nameCall(method, path, query);
  expect(`${verb} ${resource} ${namespace}/${name}`).toBe(words);
});
