/** Open ways to members, through ports that the API server forwards, and the client to ask them with. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { CLIENT_PORT, type Scheme } from '../../api/names.ts';
import { memberClientScheme, memberHost } from '../../domain/member-address.ts';
import { isPodOver } from '../../domain/pod.ts';
import type { Account } from '../../etcd/auth-tokens.ts';
import { type Ask, type Etcd, EtcdClient } from '../../etcd/client.ts';
import type { EtcdError, Result } from '../../etcd/errors.ts';
import type { TlsMaterial } from '../../etcd/transport.ts';
import { type Context, UserError, type Way } from '../context.ts';
import { type ClusterAccess, clusterAccess } from './access.ts';
import { explain } from './access-error.ts';
import type { NamedCredentials } from './named-secret.ts';
import type { Member } from './objects.ts';

/** For a port-forward through a busy API server, a TLS handshake and the response. */
const ASK_MS = 5_000;

/** Where a member is. */
export interface Place {
  /** The Pod. */
  readonly name: string;
  readonly namespace: string;
  readonly scheme: Scheme;
  /** In its certificate. */
  readonly host: string;
}

export interface Reached extends Place {
  readonly way: Way;
  /** Its URL on this machine. */
  readonly endpoint: string;
}

export interface Session {
  readonly etcd: Etcd;
  readonly credentials: ClusterAccess;
  readonly reached: readonly Reached[];
  readonly ask: (member: Pick<Reached, 'endpoint'>, timeoutMs?: number) => Ask;
  readonly close: () => void;
}

export type Ports = Pick<Context, 'client' | 'reach' | 'now' | 'signal'>;
export type HostAt = (endpoint: string) => string | undefined;

export async function openSession(
  context: Ports,
  places: readonly Place[],
  credentialsFor: (hostAt: HostAt) => Promise<ClusterAccess>,
): Promise<Session> {
  const reached = await Promise.all(
    places.map(async (place): Promise<Reached> => {
      const way = await context.reach(place, CLIENT_PORT);
      return { ...place, way, endpoint: `${place.scheme}://${way.address}` };
    }),
  );
  const credentials = await credentialsFor((endpoint) => reached.find((each) => each.endpoint === endpoint)?.host);
  const etcd = new EtcdClient(() => performance.now());
  const { access } = credentials;
  return {
    etcd,
    credentials,
    reached,
    ask: ({ endpoint }, timeoutMs = ASK_MS) => ({ endpoint, timeoutMs, access, signal: context.signal }),
    close: () => {
      etcd.close();
      for (const { way } of reached) way.close();
    },
  };
}

export const placeOf = ({ object }: Member): Place => ({
  name: object.metadata.name ?? '',
  namespace: object.metadata.namespace ?? '',
  scheme: memberClientScheme(object),
  host: memberHost(object),
});

const mayRun = ({ pod }: Member): boolean => pod !== undefined && pod.status?.podIP !== undefined && !isPodOver(pod);

/** To all members of a cluster that have a running Pod, or to one of them. */
export function clusterSession(
  context: Ports,
  cluster: EtcdCluster,
  members: readonly Member[],
  { only, named = {} }: { readonly only?: string; readonly named?: NamedCredentials } = {},
): Promise<Session> {
  const running = members.filter(mayRun).map(placeOf);
  const places = only === undefined ? running : running.filter(({ name }) => name === only);
  return openSession(context, places, async (hostAt) => {
    const found = await clusterAccess(context.client, cluster, members, hostAt, context.now);
    return withNamed(found, named, hostAt);
  });
}

/** What the user names comes before what the plugin finds, and needs no permission to read the Secrets of the operator. */
function withNamed(
  { missing, ...found }: ClusterAccess,
  { account, certificate }: NamedCredentials,
  hostAt: HostAt,
): ClusterAccess {
  const tls =
    certificate &&
    ((endpoint: string): TlsMaterial => {
      const serverName = hostAt(endpoint);
      return { ...certificate, ...(serverName !== undefined && { serverName }) };
    });
  return {
    ...found,
    access: { ...found.access, ...(account && { passwords: () => [account] }), ...(tls && { tls }) },
    ...(missing !== undefined && !tls && { missing }),
  };
}

/** The first account that would be tried; none without auth. */
export const accountOf = ({ credentials: { access } }: Session): Account | undefined => access.passwords?.()[0];

/** The port-forward knows better than etcd's client why there is no connection. */
export const causeOf = ({ way }: Reached, message: string): string => {
  const error = way.error();
  return error === undefined ? message : explain(error);
};

/** The value, or an error that names the member. */
export function expected<T>(member: Reached, result: Result<T>): T {
  if (result.ok) return result.value;
  throw new UserError(`${member.name}: ${causeOf(member, withAdvice(result.error))}`);
}

const withAdvice = ({ kind, message }: EtcdError): string =>
  kind === 'authRequired' || kind === 'authFailed'
    ? `${message}: name a Secret with a user and a password with -s`
    : message;
