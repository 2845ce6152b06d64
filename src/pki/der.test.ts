import { expect, test } from 'vitest';
import { algorithmOf, bits, boolean, integer, numbered, octets, oid, sequence, set, time, utf8 } from './der.ts';

/** Compared with what OpenSSL writes for the same. */
test.each<[string, Buffer, string]>([
  ['a short sequence', sequence(boolean(true)), '30030101ff'],
  ['nothing', sequence(), '3000'],
  ['127 bytes', octets(Buffer.alloc(127)).subarray(0, 3), '047f00'],
  ['128 bytes', octets(Buffer.alloc(128)).subarray(0, 3), '048180'],
  ['256 bytes', octets(Buffer.alloc(256)).subarray(0, 4), '04820100'],
  ['65536 bytes', octets(Buffer.alloc(65_536)).subarray(0, 5), '0483010000'],
  ['a number', integer(Buffer.from([0x7f])), '02017f'],
  ['a number that would look negative', integer(Buffer.from([0x80])), '02020080'],
  ['ecdsa-with-SHA256', oid('1.2.840.10045.4.3.2'), '06082a8648ce3d040302'],
  ['serverAuth', oid('1.3.6.1.5.5.7.3.1'), '06082b06010505070301'],
  ['a name', set(utf8('é')), '31040c02c3a9'],
  ['bits', bits(Buffer.from([0x80]), 7), '03020780'],
  ['a version', numbered(0, 'constructed', integer(Buffer.from([2]))), 'a003020102'],
  ['a host', numbered(2, 'plain', Buffer.from('a')), '820161'],
  ['a time', time(Date.parse('2026-01-02T03:04:05.678Z')), `170d${Buffer.from('260102030405Z').toString('hex')}`],
  ['a later time', time(Date.parse('2050-01-02T03:04:05Z')), `180f${Buffer.from('20500102030405Z').toString('hex')}`],
])('%s', (_, written, hex) => {
  expect(written.toString('hex')).toBe(hex);
});

/** A tenant wrote the key: whatever it is, reading its algorithm ends, and throws nothing. */
test.each([
  ['lengths of one byte', '300802010030030601aa', '0601aa'],
  ['lengths of four bytes', '30840000000c0201003084000000030601aa', '0601aa'],
  ['a version of indefinite length, which counts as empty', '3080028030030601aa', '0601aa'],
  ['a length of more bytes than any key has', '3087010101010101010102010030030601aa', ''],
  ['a key that ends within a length', '30840000', ''],
  ['no key', '', ''],
])('the algorithm of a key, with %s', (_, key, algorithm) => {
  expect(algorithmOf(Buffer.from(key, 'hex')).toString('hex')).toBe(algorithm);
});
