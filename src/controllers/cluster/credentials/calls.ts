/** The calls of the credentials chain: a closed union that `execute.ts` carries out. No call carries a key or a password. */
import type { SecretAction } from '../../../access/evaluate/view.ts';
import type { Identity } from '../../../domain/ownership.ts';
import type { NamedCall } from '../../../runtime/plan.ts';

/** The members that are called. Another cluster, or a member with another certificate, receives no request. */
export interface AtMembers {
  readonly clusterID: string;
  /** Tried in this order. */
  readonly endpoints: readonly string[];
  /** By endpoint, the DNS name that the served certificate must have. */
  readonly hosts: Readonly<Record<string, string>>;
}

/** The steps that enable auth and set the root password, in this order. */
export type RootPasswordStep = 'intendPassword' | 'makeRoot' | 'enableAuth' | 'changePassword' | 'provePassword';

export interface RootPasswordCall extends NamedCall, AtMembers {
  readonly is: 'rootPassword';
  readonly name: RootPasswordStep;
  readonly cluster: Identity;
}

/** The target is the Secret that is written or deleted. */
export interface SecretCall extends NamedCall {
  readonly is: 'secret';
  readonly name: SecretAction | 'deleteCABundle';
  readonly cluster: Identity;
}

export type CredentialsCall = RootPasswordCall | SecretCall;
