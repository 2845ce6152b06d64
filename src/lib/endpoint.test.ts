import { expect, test } from 'vitest';
import { endpointOf } from './endpoint.ts';

test('addresses of both families become URLs', () => {
  expect([endpointOf('10.0.0.1', 2379), endpointOf('fd00::1', 2379, 'https')]).toEqual([
    'http://10.0.0.1:2379',
    'https://[fd00::1]:2379',
  ]);
});
