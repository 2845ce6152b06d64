/** Who we are to the API server and where it is, as it is now: credentials rotate under a running process. */
export interface Identity {
  readonly server: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
  /** The name in the server's certificate, when it is not the one in the address. */
  readonly serverName?: string;
  /** Where namespaced commands look when nothing else is said. */
  readonly namespace?: string;
  /** Until when (milliseconds since 1970) it need not be asked for again; for credentials that cost a program's run. */
  readonly goodUntil?: number;
}

/** Asked before every call. `doubt` says that the last answer did not work: it must not come from memory again. */
export type IdentitySource = (doubt?: 'refused' | 'unreachable') => Promise<Identity>;

/** Tokens in a Pod live for an hour and are replaced long before; the files are read again this often. */
const REREAD_MS = 30_000;
/** A server that is down must not make every call read files. */
const DOUBT_MS = 1_000;
/** A credential is replaced this long before it ends, for clocks that differ and calls that are on their way. */
const EARLY_MS = 60_000;

interface Read {
  readonly identity: Identity;
  readonly at: number;
}

/** Reads again from time to time; a file that cannot be read in the middle of its rotation leaves the last answer. */
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

function isGood(
  { identity, at }: Read,
  doubt: 'refused' | 'unreachable' | undefined,
  age: number,
  now: number,
): boolean {
  const elapsed = age - at;
  if (doubt === 'refused') return elapsed < DOUBT_MS;
  if (identity.goodUntil !== undefined) return now < identity.goodUntil - EARLY_MS;
  return elapsed < (doubt ? DOUBT_MS : REREAD_MS);
}
