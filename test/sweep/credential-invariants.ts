/** What must hold at every moment of a cluster with TLS and auth, whatever happens to the operator. */
import { connect } from 'node:tls';
import { textOf } from '../../src/access/evaluate/secret-set.ts';
import { hostOf, keptPasswordName, PEER_PORT } from '../../src/api/names.ts';
import type { Running } from '../support/kubelet/pod-run.ts';
import { pause } from '../support/servers/processes.ts';
import { CLUSTER, type Rig } from './rig.ts';

const HANDSHAKE_MS = 1_000;
const ASK_MS = 2_000;
/** A member that has just started, or is about to stop, refuses everything for a moment. */
const FOR_GOOD_MS = 10_000;
const TRIES = 5;

export class CredentialInvariants {
  readonly #rig: Rig;
  /** Since when the first refuses the second. */
  readonly #refusing = new Map<string, number>();
  #checked = '';

  constructor(rig: Rig) {
    this.#rig = rig;
  }

  /** The violated invariants. */
  async sample(running: readonly Running[]): Promise<readonly string[]> {
    return [...(await this.#handshakes(running)), ...(await this.#lockedOut(running))];
  }

  /** No member refuses another one any more, and the password of the user is that of etcd. */
  async atRest(running: readonly Running[]): Promise<readonly string[]> {
    const ready = running.filter((run) => run.ready);
    const pairs = pairsOf(ready);
    const refused = await Promise.all(
      pairs.map(async ([to, from]) => ((await repeatedly(() => this.#accepts(to, from))) ? [] : [refusal(to, from)])),
    );
    const { password } = this.#rig;
    const known = password === undefined || (await repeatedly(() => this.#isPassword(ready, [password])));
    return [...refused.flat(), ...(known ? [] : ['I11: at rest, etcd does not accept the password of the user'])];
  }

  async #handshakes(running: readonly Running[]): Promise<readonly string[]> {
    const pairs = pairsOf(running.filter((run) => run.ready));
    const wrong = await Promise.all(
      pairs.map(async ([to, from]) => {
        const pair = refusal(to, from);
        if (await this.#accepts(to, from)) return void this.#refusing.delete(pair);
        const since = this.#refusing.get(pair) ?? performance.now();
        this.#refusing.set(pair, since);
        return performance.now() - since > FOR_GOOD_MS && to.ready && from.ready ? pair : undefined;
      }),
    );
    return wrong.flatMap((pair) => pair ?? []);
  }

  /** Whether one member can request the version of another one at its peer port. */
  #accepts(to: Running, from: Running): Promise<boolean> {
    const tls = from.tls('peer');
    if (!tls) return Promise.resolve(true);
    const servername = hostOf(to.pod.metadata.name ?? '', CLUSTER, this.#rig.namespace);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const address = { host: to.address, port: PEER_PORT, localAddress: from.address };
    const socket = connect({ ...address, ...tls.pair(), ca: tls.ca ?? '', servername });
    socket.setTimeout(HANDSHAKE_MS, () => socket.destroy());
    socket.once('data', () => resolve(true)); // with TLS 1.3, a client learns of a refusal only after its handshake
    socket.once('close', () => resolve(false)).on('error', () => {});
    socket.write(`GET /version HTTP/1.1\r\nHost: ${servername}\r\n\r\n`);
    return promise.finally(() => socket.destroy());
  }

  /** After every change: one of the passwords that the operator keeps is the one that etcd has. */
  async #lockedOut(running: readonly Running[]): Promise<readonly string[]> {
    const kept = () => this.#rig.secret(keptPasswordName(CLUSTER));
    const version = `${kept()?.metadata.resourceVersion} ${this.#rig.changes().length}`;
    if (!kept() || version === this.#checked) return [];
    this.#checked = version;
    const passwords = () => ['password', 'next'].map((name) => textOf(kept(), name));
    return (await repeatedly(() => this.#isPassword(running, passwords())))
      ? []
      : ['I11: the operator is locked out: etcd accepts none of the passwords that it keeps'];
  }

  /** Whether etcd accepts one of them, or any, or cannot be asked now. */
  async #isPassword(running: readonly Running[], passwords: readonly string[]): Promise<boolean> {
    const [first] = running.filter((run) => run.ready);
    const ask = first && this.#rig.asClient(first, ASK_MS);
    if (!ask) return true;
    for (const password of passwords.filter((each) => each !== '')) {
      const answer = await this.#rig.world.etcd.auth.authenticate(ask, { user: 'root', password });
      if (answer.ok || answer.error.kind !== 'authFailed') return true;
    }
    return false;
  }
}

const refusal = (to: Running, from: Running): string =>
  `I10: ${to.pod.metadata.name} refuses the certificate of ${from.pod.metadata.name}`;

const pairsOf = (running: readonly Running[]): readonly (readonly [Running, Running])[] =>
  running.flatMap((to) => running.filter((from) => from !== to).map((from) => [to, from] as const));

/** Once is no proof: the member may be electing a leader, and the ledger may be late. */
async function repeatedly(holds: () => Promise<boolean>): Promise<boolean> {
  for (let tries = 1; !(await holds()); tries++) {
    if (tries === TRIES) return false;
    await pause(HANDSHAKE_MS);
  }
  return true;
}
