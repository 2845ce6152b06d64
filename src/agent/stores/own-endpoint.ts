/**
 * Which endpoints may receive a credential that works for everybody who sees it: the token that a cloud issues to the Pod, one
 * that the key of a service account has signed, a SAS token. A user who may only write an endpoint, and name a Secret that they
 * may not read, would get it.
 */
import { misconfigured } from '../failure.ts';

const isOwn = ({ protocol, hostname }: URL, domains: readonly string[]): boolean =>
  protocol === 'https:' && domains.some((domain) => hostname.endsWith(domain));

const isSentTo = ({ protocol, hostname }: URL, domains: readonly string[]): string =>
  `is sent only to https endpoints that end in ${domains.join(' or ')}, and ${protocol}//${hostname} is not one`;

/** Throws when the endpoint does not belong to the cloud. `domains` begin with a dot. */
export function requireOwn(endpoint: URL, domains: readonly string[]): void {
  if (isOwn(endpoint, domains)) return;
  throw misconfigured(
    `the Pod's cloud identity ${isSentTo(endpoint, domains)}: set a Secret with credentials for this endpoint`,
  );
}

/** The same for a credential in a Secret: the owner of the Secret may name another endpoint beside it, under this key. */
export function requireNamed(
  endpoint: URL,
  domains: readonly string[],
  { what, key, named }: { readonly what: string; readonly key: string; readonly named: string },
): void {
  if (isOwn(endpoint, domains) || URL.parse(named)?.origin === endpoint.origin) return;
  throw misconfigured(`${what} ${isSentTo(endpoint, domains)}: set ${key} in the same Secret to ${endpoint.origin}`);
}
