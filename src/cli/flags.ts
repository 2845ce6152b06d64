/** The flags that every command has, and how a command is run with them. */
import type { Explain } from './commands/explain.ts';
import type { ConnectionFlags } from './connection.ts';
import type { Context } from './context.ts';

export interface GlobalFlags extends ConnectionFlags {
  readonly pod?: string;
  readonly credentialsSecret?: string;
}

/** Runs with the connection of these flags; resolves to the exit code. */
export type Handler = (context: Context, flags: GlobalFlags) => Promise<number>;
export type Run = (flags: GlobalFlags, handler: Handler) => Promise<void>;

/** What commands are made with. */
export interface Means {
  readonly run: Run;
  readonly print: (text: string) => void;
  readonly explain: Explain;
}
