/** What every command gets: the API server, the members, the clock and where to print. */
import type { HttpClient } from '../kube/http-client.ts';
import type { Ref } from '../kube/object.ts';
import type { Paper } from './render/style.ts';

/** An open way to one port of a Pod. */
export interface Way {
  /** `127.0.0.1:port`. */
  readonly address: string;
  /** Why the last connection could not be made. */
  readonly error: () => unknown;
  readonly close: () => void;
}

export type Reach = (pod: Ref, port: number) => Promise<Way>;

export interface Context {
  readonly client: HttpClient;
  /** Of the flag, of the context, or `default`. */
  readonly namespace: string;
  readonly reach: Reach;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => number;
  /** Ends with Ctrl-C. */
  readonly signal: AbortSignal;
  readonly paper: Paper;
  readonly isTerminal: boolean;
  /** A person can answer. */
  readonly isInteractive: boolean;
  readonly confirm: (question: string) => Promise<boolean>;
  readonly print: (text: string) => void;
  /** For people, not for scripts: to stderr. */
  readonly note: (text: string) => void;
}

/** An error that the user can act on: printed as one sentence, exit code 1. */
export class UserError extends Error {
  override readonly name = 'UserError';
}
