/** The flags that every command has, and how a command is run with them. */
import type { Explanation } from './assess/explanation.ts';
import type { VersionChecks } from './assess/upgrade.ts';
import type { ConnectionFlags } from './connection.ts';
import type { Context } from './context.ts';

export interface GlobalFlags extends ConnectionFlags {
  readonly pod?: string;
  readonly credentialsSecret?: string;
}

/** Runs with the connection of these flags; resolves to the exit code. */
export type Handler = (context: Context, flags: GlobalFlags) => Promise<number>;
export type Run = (flags: GlobalFlags, handler: Handler) => Promise<void>;

/** Of the cluster controller, which commands do not import: the entry point hands them over. `undefined`: there is no such cluster. */
export interface OperatorRules {
  readonly explain: (context: Context, cluster: string) => Promise<Explanation | undefined>;
  /** What would keep its members from getting this version. */
  readonly checkVersion: (context: Context, cluster: string, version: string) => Promise<VersionChecks | undefined>;
}

/** What commands are made with. */
export interface Means {
  readonly run: Run;
  readonly print: (text: string) => void;
  readonly rules: OperatorRules;
}
