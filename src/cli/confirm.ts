/** Commands that change something say what they will do, and ask. */
import { type Context, UserError } from './context.ts';

export interface ActFlags {
  readonly yes?: boolean;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly pod?: string;
}

/**
 * Whether to go on. With `-p` it is not asked: scripts that were written for the plugin of the Go operator would stop.
 * Without a terminal, a command on a whole cluster needs --yes.
 */
export async function isAgreed(
  context: Pick<Context, 'confirm' | 'isInteractive' | 'note'>,
  plan: string,
  { yes, dryRun, pod }: ActFlags,
): Promise<boolean> {
  if (dryRun) {
    context.note(`would ${plan}`);
    return false;
  }
  if (yes || pod !== undefined) return true;
  if (!context.isInteractive)
    throw new UserError(`this would ${plan}: pass --yes to do it without a question, or --dry-run to do nothing`);
  return context.confirm(`This will ${plan}. Go on? [y/N] `);
}

/** The operator would undo or fight a membership change, or count a voter that it did not add. */
export function requireForce(isManaged: boolean, { force }: ActFlags): void {
  if (!isManaged || force) return;
  throw new UserError(
    'the operator owns the membership of this cluster: change spec.replicas, or delete an EtcdMember to have it replaced. To change the membership behind its back, pass --force',
  );
}
