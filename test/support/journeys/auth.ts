/** Clusters on real nodes with auth enabled: which passwords there are, and which objects must not contain them. */
import { expect, onTestFinished } from 'vitest';
import { type Access, type Ask } from '../../../src/etcd/client.ts';
import type { Result } from '../../../src/etcd/errors.ts';
import type { TlsMaterial } from '../../../src/etcd/transport.ts';
import { UserClient } from '../etcd-client.ts';
import { foundIn, keyLines } from '../planted.ts';
import { becomes, conditionOf, KIND, type Tenant } from './journey.ts';
import { IN_NAMESPACE, operatorPods } from './operator.ts';
import { nudge, secretText } from './tls.ts';
import { serviceIp } from './writer.ts';

const APP = { user: 'app', password: 'planted-of-the-app' };

export class Guarded {
  readonly tenant: Tenant;
  readonly name: string;
  readonly secret: string;
  readonly #etcd = new UserClient(() => performance.now());
  /** Every password that there ever was. */
  readonly #planted: Record<string, string> = { app: APP.password };

  constructor(tenant: Tenant, name: string) {
    this.tenant = tenant;
    this.name = name;
    this.secret = `${name}-root`;
    onTestFinished(() => this.#etcd.close());
  }

  get auth(): object {
    return { enabled: true, rootCredentialsSecretRef: { name: this.secret } };
  }

  /** What the user does with the Secret. */
  async give(password: string): Promise<void> {
    this.#planted[password] = password;
    const metadata = { name: this.secret, namespace: this.tenant.namespace };
    const data = { password: Buffer.from(password).toString('base64') };
    await this.tenant.cluster.apply([{ apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata, data }]);
  }

  /** The same, and the operator reconciles at once instead of within minutes. */
  async change(password: string): Promise<void> {
    await this.give(password);
    await nudge(this.tenant, this.name);
  }

  async take(): Promise<void> {
    await this.tenant.kubectl('delete', 'secret', this.secret);
    await nudge(this.tenant, this.name);
  }

  /** Waits until the condition AuthEnabled has this status and reason. */
  is(status: string, reason: string): Promise<string> {
    return becomes(`AuthEnabled to be ${status}, ${reason}`, async () => {
      const condition = conditionOf(await this.tenant.get(KIND, this.name), 'AuthEnabled');
      expect(condition).toMatchObject({ status, reason });
      return condition?.message ?? '';
    });
  }

  /** Through the Service, with the certificate of an application, and with a password if there is one. */
  async as(password?: string, user = 'root'): Promise<Ask & { readonly access: Access }> {
    const text = await secretText(this.tenant, `${this.name}-client-tls`);
    const [ca = '', cert = '', key = ''] = ['ca.crt', 'tls.crt', 'tls.key'].map((part) => text[part]);
    const tls: TlsMaterial = { ca, cert, key, serverName: `${this.name}-client.${this.tenant.namespace}.svc` };
    const passwords = password === undefined ? [] : [{ user, password }];
    return {
      endpoint: `https://${await serviceIp(this.tenant, this.name)}:2379`,
      timeoutMs: 5_000,
      access: { cluster: crypto.randomUUID(), tls: () => tls, passwords: () => passwords },
    };
  }

  /** The result of a write with this password. */
  async put(password?: string): Promise<string> {
    const answer = await this.#etcd.put(await this.as(password), 'k', 'v');
    return answer.ok ? 'ok' : answer.error.kind;
  }

  letsIn(password: string): Promise<void> {
    return becomes('root to authenticate with the password', async () => expect(await this.put(password)).toBe('ok'));
  }

  /** What root does in etcd, one after the other. */
  async does(
    password: string,
    ...deeds: readonly ((auth: UserClient['auth'], ask: Ask) => Promise<Result<unknown>>)[]
  ) {
    const ask = await this.as(password);
    for (const deed of deeds) expect(await deed(this.#etcd.auth, ask)).toMatchObject({ ok: true });
  }

  /** An application with its own user, which may write what a writer writes: a new root password does not affect it. */
  async application(password: string): Promise<Access> {
    await this.does(
      password,
      (auth, ask) => auth.addUser(ask, APP.user, APP.password),
      (auth, ask) => auth.addRole(ask, 'writer', { key: 'seq/', prefix: true }),
      (auth, ask) => auth.grantRole(ask, APP.user, 'writer'),
    );
    return (await this.as(APP.password, APP.user)).access;
  }

  /** No password, key or token is in anything that other users can read. */
  async reportsNoPassword(): Promise<void> {
    const { tenant, name } = this;
    const keys = await Promise.all(
      ['client-ca', 'peer-ca', 'server-mounted', 'peer-mounted', 'operator-client-tls', 'client-tls'].map(
        async (part) => keyLines(part, (await secretText(tenant, `${name}-${part}`))['tls.key'] ?? ''),
      ),
    );
    const pods = (await tenant.list('pods')).map(({ metadata }) => metadata.name);
    const operators = await operatorPods();
    const readable = [
      ...(await Promise.all(pods.map((pod) => tenant.kubectl('logs', pod)))),
      ...(await Promise.all(operators.map((pod) => tenant.cluster.kubectl([...IN_NAMESPACE, 'logs', pod])))),
      ...(await Promise.all(operators.map((pod) => metricsOf(tenant, pod)))),
      await tenant.cluster.kubectl([...IN_NAMESPACE, 'get', 'pods', '-o', 'json']),
      await tenant.kubectl(
        'get',
        `${KIND},etcdmembers,pods,events,services,pdb,pvc`,
        '-o',
        'json',
        '--show-managed-fields',
      ),
    ].join('\n');
    expect(readable).toContain('etcd_operator_'); // the metrics are there
    expect(readable).toContain(name);
    expect(foundIn(readable, { ...this.#planted, ...Object.assign({}, ...keys) })).toEqual([]);
  }
}

const metricsOf = ({ cluster }: Tenant, pod: string): Promise<string> => {
  const [, namespace] = IN_NAMESPACE;
  return cluster.kubectl(['get', '--raw', `/api/v1/namespaces/${namespace}/pods/${pod}:8080/proxy/metrics`]);
};
