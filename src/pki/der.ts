/** Encodes the few ASN.1 types of a certificate as DER. The only decoder reads the algorithm of a PKCS #8 key. */

const tagged = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts);
  const bytes: number[] = [];
  for (let rest = content.length; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  const length = content.length < 0x80 ? [content.length] : [0x80 | bytes.length, ...bytes];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
};

export const sequence = (...parts: readonly Uint8Array[]): Buffer => tagged(0x30, ...parts);
export const set = (...parts: readonly Uint8Array[]): Buffer => tagged(0x31, ...parts);
/** A context-specific tag; `constructed`: its content is further elements. */
export const numbered = (n: number, how: 'constructed' | 'plain', ...parts: readonly Uint8Array[]): Buffer =>
  tagged((how === 'constructed' ? 0xa0 : 0x80) | n, ...parts);

export const boolean = (value: boolean): Buffer => tagged(0x01, Buffer.from([value ? 0xff : 0x00]));
/** Positive: a first byte of 0x80 or more would be a sign. */
export const integer = (bytes: Uint8Array): Buffer =>
  tagged(0x02, (bytes[0] ?? 0) < 0x80 ? bytes : Buffer.from([0, ...bytes]));
export const octets = (content: Uint8Array): Buffer => tagged(0x04, content);
export const utf8 = (text: string): Buffer => tagged(0x0c, Buffer.from(text));
export const bits = (content: Uint8Array, unused = 0): Buffer => tagged(0x03, Buffer.from([unused]), content);

/** `1.2.840.10045.4.3.2` */
export function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const base128 = (n: number): readonly number[] => {
    const digits = [n & 0x7f];
    for (let left = Math.floor(n / 128); left > 0; left = Math.floor(left / 128)) digits.unshift((left & 0x7f) | 0x80);
    return digits;
  };
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** Whole seconds; years from 2050 on need the longer form. */
export function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
  return Number(digits.slice(0, 4)) < 2050
    ? tagged(0x17, Buffer.from(digits.slice(2)))
    : tagged(0x18, Buffer.from(digits));
}

/** Where the content of an element starts, and where the element ends. A truncated element, or one of indefinite length, is empty. */
function spanAt(der: Buffer, at: number): { readonly from: number; readonly to: number } {
  const first = der[at + 1] ?? 0;
  const bytes = first < 0x80 ? 0 : first & 0x7f;
  if (bytes > 4 || at + 2 + bytes > der.length) return { from: der.length, to: der.length };
  const from = at + 2 + bytes;
  return { from, to: from + (bytes === 0 ? (first < 0x80 ? first : 0) : der.readUIntBE(at + 2, bytes)) };
}

/** The algorithm identifier of a PKCS #8 key: SEQUENCE { version, SEQUENCE { algorithm, … }, … }. */
export function algorithmOf(pkcs8: Buffer): Buffer {
  const version = spanAt(pkcs8, spanAt(pkcs8, 0).from);
  const at = spanAt(pkcs8, version.to).from;
  return pkcs8.subarray(at, spanAt(pkcs8, at).to);
}
