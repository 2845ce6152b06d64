/**
 * Where no store is. The services of clouds that tell a node, or a Pod, who it is are at addresses that each machine has for
 * itself: a tenant who may only write an endpoint must not reach them from the agent's Pod, under no name. What the libraries
 * themselves ask there, for credentials that a Pod has from its cloud, does not come this way.
 */
import dns from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { AgentFailure } from '../failure.ts';

const REFUSED = new BlockList();
REFUSED.addSubnet('169.254.0.0', 16, 'ipv4'); // also as ::ffff:169.254.0.0
REFUSED.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6'); // the same behind NAT64
REFUSED.addSubnet('fe80::', 10, 'ipv6');
REFUSED.addAddress('fd00:ec2::254', 'ipv6'); // Amazon's
REFUSED.addAddress('fd00:ec2::23', 'ipv6');
REFUSED.addAddress('fd20:ce::254', 'ipv6'); // Google's

const isRefused = (address: string): boolean => REFUSED.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** As the code of an error: libraries keep it, whatever else they make of it. */
export const NO_STORE = 'NoStoreAtThisAddress';
export const NO_STORE_WORDS =
  'the endpoint leads to an address where clouds tell machines who they are, and no store is there: check the endpoint';

/** Nobody looks up what is an address already. */
export function checkEndpoint({ hostname }: URL): void {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0 && isRefused(host)) throw new AgentFailure('Misconfigured', `${host}: ${NO_STORE_WORDS}`);
}

/** For connections: what a name leads to is looked at when it is used, not before. */
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
