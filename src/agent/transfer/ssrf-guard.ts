/**
 * SSRF guard: endpoints that are never a store. Cloud metadata services, which issue identities to nodes and Pods,
 * listen on link-local addresses: a tenant who may only write an endpoint must not reach them from the agent's Pod,
 * under any name. The libraries' own requests there, for the Pod's credentials, do not pass this guard.
 */
import dns from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { misconfigured } from '../failure.ts';

const REFUSED = new BlockList();
REFUSED.addSubnet('169.254.0.0', 16, 'ipv4'); // also as ::ffff:169.254.0.0
REFUSED.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6'); // the same behind NAT64
REFUSED.addSubnet('fe80::', 10, 'ipv6');
REFUSED.addAddress('fd00:ec2::254', 'ipv6'); // Amazon
REFUSED.addAddress('fd00:ec2::23', 'ipv6');
REFUSED.addAddress('fd20:ce::254', 'ipv6'); // Google

const isRefused = (address: string): boolean => REFUSED.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** As the code of an error: libraries preserve it. */
export const NO_STORE = 'NoStoreAtThisAddress';
export const NO_STORE_MESSAGE =
  'the endpoint resolves to the address of a cloud metadata service, which is not allowed: check the endpoint';

/** Node does not resolve a literal address, so it is checked here. */
export function checkEndpoint({ hostname }: URL): void {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && isRefused(host)) throw misconfigured(`${host}: ${NO_STORE_MESSAGE}`);
}

/** For connections: the resolved address is checked when it is used, not before. */
export const guardedLookup: LookupFunction = (host, options, done) =>
  dns.lookup(host, { ...options, all: true }, (error, found) => {
    const [first] = found ?? [];
    if (error || !first) done(error, []);
    else if (found.some(({ address }) => isRefused(address)))
      done(Object.assign(new Error(`${host} is refused`), { code: NO_STORE }), []);
    else if (options.all === true) done(null, found);
    else done(null, first.address, first.family);
  });

const KEPT = { keepAlive: true, lookup: guardedLookup } as const;

export const httpAgent = (): http.Agent => new http.Agent(KEPT);
export const httpsAgent = (tls: { readonly ca?: string[] } = {}): https.Agent => new https.Agent({ ...KEPT, ...tls });
