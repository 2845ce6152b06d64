/**
 * Whom a token may be shown to that a cloud gives to the Pod. Whoever has it is the Pod to that cloud: whoever writes an endpoint
 * would be given it.
 */
import { AgentFailure } from '../failure.ts';

/** Throws when the endpoint is not one of the cloud's own. `domains` begin with a dot. */
export function requireOwn({ protocol, hostname }: URL, domains: readonly string[]): void {
  if (protocol === 'https:' && domains.some((domain) => hostname.endsWith(domain))) return;
  throw new AgentFailure(
    'Misconfigured',
    `what the Pod is given by its cloud is shown to nobody but that cloud, at https and names that end in ${domains.join(' or ')}, and ${protocol}//${hostname} is not: name a Secret with credentials for it`,
  );
}
