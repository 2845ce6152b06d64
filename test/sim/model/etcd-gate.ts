/** Which requests a member accepts: what a learner refuses, which user must authenticate, and how the client does it. */
import { type Account, AuthTokens, type Refused, type Token } from '../../../src/etcd/auth-tokens.ts';
import type { Ask } from '../../../src/etcd/client.ts';
import type { EtcdError, EtcdErrorKind, Result } from '../../../src/etcd/errors.ts';
import type { ModelEtcd } from './etcd.ts';
import type { Group, State } from './etcd-group.ts';
import { type Disk, type ModelNode, stateOf } from './etcd-node.ts';
import { etcdError, isRefusal } from './etcd-said.ts';
import { certificateUser } from './etcd-tls.ts';

export interface Call {
  readonly node: ModelNode;
  readonly disk: Disk;
  readonly group: Group;
  /** As this member has applied it. */
  readonly state: State;
  /** Undefined while auth is disabled. */
  readonly user: string | undefined;
}

export interface Needs {
  /** Which user may send it while auth is enabled. */
  readonly who: 'anyone' | 'user' | 'root';
  /** Whether a learner serves it. */
  readonly learner?: boolean;
  /** Whether a member serves it while it is being defragmented. */
  readonly whileDefragmenting?: boolean;
}

const TOKEN_SECONDS = 300;
const clusterOf = ({ access, endpoint }: Ask): string => access?.cluster ?? endpoint;

export const isLearner = ({ disk, state }: Pick<Call, 'disk' | 'state'>): boolean =>
  state.members.get(disk.id)?.isLearner ?? false;

/** A change needs a leader, and with it a quorum. */
export const agreed = <T>({ group }: Call, change: (state: State) => T): T | EtcdError =>
  group.leader === undefined ? etcdError('timeout') : group.commit(change);

interface Issued {
  readonly user: string;
  readonly stamp: number;
  readonly epoch: number;
}

export class Gate {
  readonly model: ModelEtcd;
  readonly #tokens = new AuthTokens();
  readonly #issued = new Map<string, Issued>();

  constructor(model: ModelEtcd) {
    this.model = model;
  }

  async ask<T>(ask: Ask, needs: Needs, serve: (call: Call) => T | EtcdError): Promise<Result<T>> {
    for (let refused: Refused | undefined; ; ) {
      const token = await this.#token(ask, refused);
      if (!token.ok) return token;
      const answer = await this.model.ask(ask, (node, disk) => {
        const call = this.enter(node, disk, needs, token.value, certificateUser(node, ask));
        return isRefusal(call) ? call : serve(call);
      });
      if (answer.ok || refused || !tokenMayHelp(ask, token.value, answer.error)) return answer;
      refused = { token: token.value };
    }
  }

  authenticate(ask: Ask, account: Account): Promise<Result<string>> {
    return this.model.ask(ask, (node, disk) => {
      const call = this.enter(node, disk, { who: 'anyone' }, undefined);
      return isRefusal(call) ? call : this.#authenticate(call, account);
    });
  }

  forget(cluster: string): void {
    this.#tokens.forget(cluster);
  }

  /** The token for a call that does not go through `ask`: a stream. */
  token(ask: Ask): Promise<Result<Token>> {
    return this.#token(ask);
  }

  enter(
    node: ModelNode,
    disk: Disk,
    { who, learner = false, whileDefragmenting = false }: Needs,
    token: Token,
    certified?: string,
  ): Call | EtcdError {
    const { group } = disk;
    const state = stateOf(disk);
    const call: Call = { node, disk, group, state, user: undefined };
    if (!whileDefragmenting && node.defragmentsUntil > this.model.now) return etcdError('timeout');
    if (!learner && isLearner(call)) return etcdError('learnerRefused');
    if (!state.users.enabled) return call;
    const user = token === undefined ? certified : this.#userOf(call, token);
    if (isRefusal(user)) return user;
    if (who !== 'anyone' && user === undefined) return etcdError('authRequired');
    if (who === 'root' && !state.users.isRoot(user ?? '')) return etcdError('permissionDenied');
    return { ...call, user };
  }

  /** A token expires some time after its last use, and is known only to processes that ran when it was issued. */
  #userOf({ node, state }: Call, token: string): string | EtcdError {
    const issued = this.#issued.get(token);
    const { users } = state;
    const lives = (node.tokens.get(token) ?? 0) > this.model.now;
    if (!issued || !lives || issued.epoch !== users.epoch || issued.stamp !== users.stampOf(issued.user))
      return etcdError('invalidToken');
    node.tokens.set(token, this.model.now + tokenMs(node));
    return issued.user;
  }

  #authenticate({ group, state: { users } }: Call, account: Account): string | EtcdError {
    if (!users.enabled) return etcdError('authNotEnabled');
    if (!users.accepts(account)) return etcdError('authFailed');
    if (group.leader === undefined) return etcdError('timeout');
    const token = `token.${++this.model.tokens}`;
    this.#issued.set(token, { user: account.user, stamp: users.stampOf(account.user) ?? 0, epoch: users.epoch });
    for (const node of this.model.live(group)) node.tokens.set(token, this.model.now + tokenMs(node));
    return token;
  }

  async #token(ask: Ask, refused?: Refused): Promise<Result<Token>> {
    const passwords = ask.access?.passwords?.() ?? [];
    if (passwords.length === 0) return { ok: true, value: undefined };
    const authenticate = (account: Account): Promise<Result<string>> => this.authenticate(ask, account);
    const got = await this.#tokens.token(
      { cluster: clusterOf(ask), endpoint: ask.endpoint, passwords, refused },
      authenticate,
    );
    return !got.ok && got.error.kind === 'learnerRefused' ? { ok: true, value: undefined } : got;
  }
}

/** As the client does: see `src/etcd/call.ts`. */
const UNAUTHENTICATED: readonly EtcdErrorKind[] = ['authRequired', 'permissionDenied', 'userUnknown'];
const tokenMayHelp = ({ access }: Ask, token: Token, { kind }: EtcdError): boolean =>
  (access?.passwords?.() ?? []).length > 0 &&
  (kind === 'invalidToken' || (token === undefined && UNAUTHENTICATED.includes(kind)));

const tokenMs = ({ options }: ModelNode): number => (options.tokenSeconds ?? TOKEN_SECONDS) * 1_000;
