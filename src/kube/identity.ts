/**
 * The API server's address and the operator's credentials, as they are now: credentials rotate under a running process.
 */
export interface Identity {
  readonly server: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
  /** The name in the API server's certificate, when it differs from the address. */
  readonly serverName?: string;
  /** The API server's certificate is not verified: a user of kubectl may ask for that, the operator never does. */
  readonly insecure?: boolean;
  /** An HTTP proxy that the API server is reached through: for users; the operator has none. */
  readonly proxy?: string;
  /** Acts as another user, which the API server must allow. */
  readonly impersonate?: { readonly user: string; readonly groups: readonly string[] };
  /** The default namespace for namespaced commands. */
  readonly namespace?: string;
  /** Valid until then (milliseconds since 1970); for credentials that cost an exec plugin's run. */
  readonly goodUntil?: number;
}

/** Who sends the request. */
export const identityHeaders = ({ token, impersonate }: Identity): Readonly<Record<string, string | string[]>> => ({
  ...(token !== undefined && { authorization: `Bearer ${token}` }),
  ...(impersonate && {
    'impersonate-user': impersonate.user,
    ...(impersonate.groups.length > 0 && { 'impersonate-group': [...impersonate.groups] }),
  }),
});

type Doubt = 'refused' | 'unreachable';

/** Called before every request. `doubt`: the last identity did not work, so it must not come from the cache again. */
export type IdentitySource = (doubt?: Doubt) => Promise<Identity>;

/** A Pod's tokens live for an hour and are replaced long before; the files are read again this often. */
const REREAD_MS = 30_000;
/** Minimum time between reads while the API server is unreachable: not every failing call may read files. */
const DOUBT_MS = 1_000;
/** A credential is replaced this long before it expires, for clock skew and calls in flight. */
const EARLY_MS = 60_000;

interface Read {
  readonly identity: Identity;
  readonly at: number;
}

/**
 * Reads the files again from time to time; a file that is unreadable during its rotation leaves the previous identity.
 */
export function rereading(
  read: () => Promise<Identity>,
  monotonic: () => number,
  now: () => number = () => Date.now(),
): IdentitySource {
  let last: Read | undefined;
  let reading: Promise<Identity> | undefined;
  const readOnce = async (): Promise<Identity> => {
    try {
      last = { identity: await read(), at: monotonic() };
    } catch (error) {
      if (!last) throw error;
      last = { ...last, at: monotonic() };
    } finally {
      reading = undefined;
    }
    return last.identity;
  };
  return async (doubt) => {
    if (last && isGood(last, doubt, monotonic(), now())) return last.identity;
    reading ??= readOnce();
    return reading;
  };
}

function isGood({ identity, at }: Read, doubt: Doubt | undefined, age: number, now: number): boolean {
  const elapsed = age - at;
  if (doubt === 'refused') return elapsed < DOUBT_MS;
  if (identity.goodUntil !== undefined) return now < identity.goodUntil - EARLY_MS;
  return elapsed < (doubt ? DOUBT_MS : REREAD_MS);
}
