/** Networks as Kubernetes reads them: an address, and the length of its prefix. */

interface Network {
  /** 32 of IPv4, 128 of IPv6. */
  readonly bits: number;
  readonly address: bigint;
  readonly prefix: number;
}

/** Parts of as many bits each, the first one highest. */
const joined = (parts: readonly number[], bitsEach: number): bigint =>
  parts.reduce((address, part) => (address << BigInt(bitsEach)) | BigInt(part), 0n);

function ipv4(text: string): bigint | undefined {
  const parts = text.split('.');
  const isByte = (part: string): boolean => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) <= 255;
  return parts.length === 4 && parts.every(isByte) ? joined(parts.map(Number), 8) : undefined;
}

const GROUPS = 8;

/** `::` stands for at least one group of zeros. */
function ipv6(text: string): bigint | undefined {
  const [head = [], tail, more] = text.split('::').map((side) => (side === '' ? [] : side.split(':')));
  const absent = GROUPS - head.length - (tail?.length ?? 0);
  if (more || (tail ? absent < 1 : absent !== 0)) return undefined;
  const groups = [...head, ...Array.from({ length: absent }, () => '0'), ...(tail ?? [])];
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined;
  return joined(
    groups.map((group) => Number.parseInt(group, 16)),
    16,
  );
}

/** `undefined`: it is none. */
export function parseCidr(text: string): Network | undefined {
  const [, host = '', length = ''] = /^([^/]*)[/](0|[1-9][0-9]{0,2})$/.exec(text) ?? [];
  const isV6 = host.includes(':');
  const address = isV6 ? ipv6(host) : ipv4(host);
  const bits = isV6 ? 128 : 32;
  return address === undefined || Number(length) > bits ? undefined : { bits, address, prefix: Number(length) };
}

/** Whether a network is a smaller part of another one. */
export function isInside(inner: Network, outer: Network): boolean {
  const rest = BigInt(outer.bits - outer.prefix);
  return inner.bits === outer.bits && inner.prefix > outer.prefix && inner.address >> rest === outer.address >> rest;
}
