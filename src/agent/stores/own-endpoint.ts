/**
 * Which endpoints may receive the token that a cloud issues to the Pod. A holder of the token acts as the Pod in that
 * cloud: a user who may only write an endpoint would get it.
 */
import { misconfigured } from '../failure.ts';

/** Throws when the endpoint does not belong to the cloud. `domains` begin with a dot. */
export function requireOwn({ protocol, hostname }: URL, domains: readonly string[]): void {
  if (protocol === 'https:' && domains.some((domain) => hostname.endsWith(domain))) return;
  throw misconfigured(
    `the Pod's cloud identity is sent only to https endpoints that end in ${domains.join(' or ')}, and ${protocol}//${hostname} is not one: set a Secret with credentials for this endpoint`,
  );
}
