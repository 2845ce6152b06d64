import { BlockList, isIPv6 } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isInside, parseCidr } from './cidr.ts';

test.each([
  ['192.0.2.0/24', true],
  ['0.0.0.0/0', true],
  ['255.255.255.255/32', true],
  ['2001:db8::/32', true],
  ['::/0', true],
  ['::1/128', true],
  ['1:2:3:4:5:6:7:8/64', true],
  ['1::/16', true],
  ['999.0.2.0/24', false],
  ['192.0.2/24', false],
  ['192.0.2.0.1/24', false],
  ['192.0.02.0/24', false],
  ['192.0.2.0/33', false],
  ['192.0.2.0/024', false],
  ['192.0.2.0', false],
  ['/24', false],
  ['::/129', false],
  [':/8', false],
  [':::/8', false],
  ['1::2::3/64', false],
  ['1:2:3:4:5:6:7:8:9/64', false],
  ['1:2:3:4:5:6:7::8/64', false],
  ['1:2:3:4:5:6:7::/64', true],
  ['1:2:3:4:5:6:7:8::/64', false],
  ['1:2:3:4:5:6:7/64', false],
  ['fffff::/16', false],
  ['::ffff:192.0.2.0/120', false],
  ['.:/1', false],
])('%s is a network: %s', (text, is) => {
  expect(parseCidr(text) !== undefined).toBe(is);
});

test.each([
  ['192.0.2.128/25', '192.0.2.0/24', true],
  ['192.0.2.0/24', '192.0.2.0/24', false],
  ['192.0.0.0/16', '192.0.2.0/24', false],
  ['198.51.100.0/25', '192.0.2.0/24', false],
  ['10.0.0.0/8', '0.0.0.0/0', true],
  ['2001:db8:1::/48', '2001:db8::/32', true],
  ['2001:db9::/48', '2001:db8::/32', false],
  ['10.0.0.0/8', '::/0', false],
])('%s is a smaller network inside of %s: %s', (inner, outer, is) => {
  const [a, b] = [parseCidr(inner), parseCidr(outer)];
  expect(a && b && isInside(a, b)).toBe(is);
});

test('an address is inside of a network exactly where Node says so', () => {
  const cidr = fc.oneof(fc.tuple(fc.ipV4(), fc.nat(31)), fc.tuple(fc.ipV6(), fc.nat(127)));
  fc.assert(
    fc.property(cidr, fc.oneof(fc.ipV4(), fc.ipV6()), ([network, prefix], address) => {
      fc.pre(!`${network}${address}`.includes(':') || !/:.*[.]/.test(`${network} ${address}`));
      const [outer, inner] = [parseCidr(`${network}/${prefix}`), parseCidr(`${address}/${isIPv6(address) ? 128 : 32}`)];
      if (!outer || !inner) return; // an IPv4 address within an IPv6 one
      const list = new BlockList();
      list.addSubnet(network, prefix, isIPv6(network) ? 'ipv6' : 'ipv4');
      expect(isInside(inner, outer)).toBe(
        isIPv6(network) === isIPv6(address) && list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4'),
      );
    }),
  );
});
