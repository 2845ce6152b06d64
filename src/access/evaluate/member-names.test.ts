/** Certificates of running members without a wildcard name, as the Go operator accepted them. */
import { beforeAll, describe, expect, test } from 'vitest';
import { NOW } from '../../../test/support/builders/builders.ts';
import {
  aCopy,
  ca,
  cluster,
  GRACE,
  type Held,
  leaf,
  makeCAs,
  NAMES,
  NOTHING_MOUNTED,
  secret,
  summaryOf,
} from '../../../test/support/builders/credentials.ts';
import type { Tls } from '../../api/tls.ts';
import { evaluate } from './evaluate.ts';

beforeAll(makeCAs);

const tls: Tls = { client: { serverSecretRef: { name: 'server' } }, peer: { secretRef: { name: 'peer' } } };
const adopted = ['db-0', 'db-1', 'db-2'].map((member) => `${member}.db-headless.ns.svc`);
const WITHOUT = [...adopted, 'db-client.ns.svc'];
const WILDCARDS = ['*.db.ns.svc', '*.db.ns.svc.cluster.local'];

const judged = (held: Held, hosts: readonly string[] = adopted, formed = true) =>
  evaluate(cluster(tls, formed), new Map(Object.entries(held)), {
    now: NOW,
    domain: 'cluster.local',
    mounted: { ...NOTHING_MOUNTED, running: formed, hosts },
    graceMs: GRACE,
  });
const secrets = async (hosts: readonly string[]): Promise<Held> => ({
  server: secret(await leaf({ hosts }), ca.cert),
  peer: secret(await leaf({ hosts }), ca.cert),
});
const lackedBy = (held: Held, hosts?: readonly string[]) =>
  judged(held, hosts).view.certificates.map(({ newMembersLack }) => newMembersLack);

describe('of a cluster that was taken over', () => {
  test.each<[string, readonly string[]]>([
    ['enumerated names', WITHOUT],
    ['the wildcard of the previous headless Service', ['*.db-headless.ns.svc', 'db-client.ns.svc']],
  ])('%s: the operator connects, and members keep them', async (_, names) => {
    const held = await secrets(names);
    expect(judged(held).material).toEqual({ ca: ca.cert });
    expect(summaryOf(judged(held))).toEqual([
      'server: copySecret newMemberNameMissing',
      'peer: copySecret newMemberNameMissing',
    ]);
    expect(lackedBy(held)).toEqual([[WILDCARDS[0]], WILDCARDS]);
    expect(judged(held).view.certificates.every(({ usable }) => usable)).toBe(true);
  });

  test('one member that is not reached by its name does not keep the operator from the others', async () => {
    const held = await secrets([...adopted.slice(1), 'db-client.ns.svc']);
    expect(judged(held).material).toEqual({ ca: ca.cert });
    expect(judged(held).view.trusts.map(({ next }) => next?.step)).toEqual(['adopt', undefined]);
    expect(summaryOf(judged(held))).toEqual([
      'server: copySecret memberNameMissing newMemberNameMissing',
      'peer: copySecret memberNameMissing newMemberNameMissing',
    ]);
  });

  test('new members lack nothing once their Pods mount a certificate with the wildcard', async () => {
    const [before, after] = [await secrets(WITHOUT), await secrets([...WITHOUT, ...NAMES])];
    const copies = (of: Held): Held => ({
      'db-server-mounted': aCopy(of['server']),
      'db-peer-mounted': aCopy(of['peer']),
    });
    expect(lackedBy({ ...after, ...copies(before) })).toEqual([[WILDCARDS[0]], WILDCARDS]);
    expect(summaryOf(judged({ ...after, ...copies(before) }))).toEqual([
      'server: copyCertificate',
      'peer: copyCertificate',
    ]);
    expect(lackedBy({ ...after, ...copies(after) })).toEqual([undefined, undefined]);
  });

  test('a certificate that lacks the name of a member does not replace one that has it', async () => {
    const held = await secrets(WITHOUT);
    const worse = secret(await leaf({ hosts: adopted.slice(1) }), ca.cert);
    expect(summaryOf(judged({ ...held, server: worse, 'db-server-mounted': aCopy(held['server']) }))[0]).toContain(
      'server: - memberNameMissing',
    );
  });

  test('a certificate without the wildcard does not replace one that has it', async () => {
    const [good, enumerated] = [await secrets(NAMES), await secrets(WITHOUT)];
    const held = { ...good, server: enumerated['server'], 'db-server-mounted': aCopy(good['server']) } as Held;
    expect(summaryOf(judged(held))[0]).toBe('server: - memberNameMissing');
    expect(lackedBy(held)[0]).toBeUndefined();
  });
});

test('a cluster that has not started yet needs the wildcard: its members are to come', async () => {
  const held = await secrets(WITHOUT);
  expect(summaryOf(judged(held, [], false))).toEqual(['server: - memberNameMissing', 'peer: - memberNameMissing']);
});
