import { expect, test } from 'vitest';
import { endpointOf } from './endpoint.ts';

test('IPv4 and IPv6 addresses become URLs', () => {
  expect([endpointOf('10.0.0.1', 2379), endpointOf('fd00::1', 2379, 'https')]).toEqual([
    'http://10.0.0.1:2379',
    'https://[fd00::1]:2379',
  ]);
});
