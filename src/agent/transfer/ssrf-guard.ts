/**
 * SSRF guard: endpoints that are never a store. Cloud metadata services, which issue identities to nodes and Pods, listen on
 * link-local and a few other addresses; and there is the API server. A tenant who may only write an endpoint must not reach
 * them from the agent's Pod, under any name. The libraries' own requests there, for the Pod's credentials, do not pass this
 * guard. Private networks pass: stores in the cluster have such addresses. Loopback passes: it is the agent's own Pod.
 */
import dns from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { STORE_ENDPOINTS_VARIABLE } from '../../domain/agent-task.ts';
import { isListed } from '../../domain/tenancy.ts';
import { misconfigured } from '../failure.ts';

const REFUSED = new BlockList();
/** Also as ::ffff:…, which BlockList compares itself, and behind NAT64. */
const refuseIPv4 = (address: string, bits: number): void => {
  REFUSED.addSubnet(address, bits, 'ipv4');
  REFUSED.addSubnet(`64:ff9b::${address}`, 96 + bits, 'ipv6');
};
refuseIPv4('169.254.0.0', 16);
refuseIPv4('0.0.0.0', 8); // this host
refuseIPv4('224.0.0.0', 4); // multicast
refuseIPv4('240.0.0.0', 4); // reserved, and broadcast
refuseIPv4('100.100.100.200', 32); // Alibaba
refuseIPv4('168.63.129.16', 32); // Azure's wire server
refuseIPv4('192.0.0.192', 32); // Oracle
REFUSED.addAddress('::', 'ipv6');
REFUSED.addSubnet('ff00::', 8, 'ipv6');
REFUSED.addSubnet('fe80::', 10, 'ipv6');
REFUSED.addAddress('fd00:ec2::254', 'ipv6'); // Amazon
REFUSED.addAddress('fd00:ec2::23', 'ipv6');
REFUSED.addAddress('fd20:ce::254', 'ipv6'); // Google

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

/** The kubelet sets it in every Pod. Compared as an address: `::ffff:10.96.0.1` reaches 10.96.0.1 as well. */
function isApiServer(address: string): boolean {
  const own = process.env['KUBERNETES_SERVICE_HOST'] ?? '';
  if (isIP(own) === 0) return false;
  const list = new BlockList();
  list.addAddress(own, familyOf(own));
  if (isIP(own) === 4) list.addAddress(`64:ff9b::${own}`, 'ipv6');
  return list.check(address, familyOf(address));
}

const isRefused = (address: string): boolean => REFUSED.check(address, familyOf(address)) || isApiServer(address);

/** As the code of an error: libraries preserve it. */
export const NO_STORE = 'NoStoreAtThisAddress';
export const NO_STORE_MESSAGE =
  'the endpoint resolves to the address of a cloud metadata service or of the API server, which is not allowed: check the endpoint';

/** The administrator's list. The operator has compared it with the spec; a connection string in a Secret names a host of its own. */
const allowed = (): readonly string[] => JSON.parse(process.env[STORE_ENDPOINTS_VARIABLE] ?? '[]') as readonly string[];

/** Node does not resolve a literal address, so it is checked here. */
export function checkEndpoint(endpoint: URL): void {
  const list = allowed();
  if (list.length > 0 && !isListed(list, endpoint))
    throw misconfigured(
      `the store ${endpoint.host} is not in the list of allowed endpoints: use one of ${list.join(', ')}, or ask the administrator of the operator to allow it (tenancy.allowedStoreEndpoints)`,
    );
  const { hostname } = endpoint;
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
