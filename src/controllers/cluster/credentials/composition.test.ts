/** What the chain relies on in the stages, and the stages in the chain. */
import { expect, test } from 'vitest';
import { aCluster, NOW } from '../../../../test/support/builders/builders.ts';
import { type Is, joining, up, world } from '../../../../test/support/builders/members.ts';
import { modelWorld, putInCache, runningCluster } from '../../../../test/support/builders/ports.ts';
import { BOTH, NEW, rotating, started, trust } from '../../../../test/support/builders/rotating.ts';
import { NO_CERTIFICATES } from '../../../access/evaluate/view.ts';
import { SecretCache } from '../../../access/secret-cache.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { ApiError } from '../../../kube/errors.ts';
import { NO_MEMORY } from '../../../runtime/plan.ts';
import { clientService, headlessService } from '../build.ts';
import { decide } from '../decide.ts';
import { observe } from '../observe.ts';
import { certificateFor, requestedNeeds } from './cert-manager-requests.ts';

test('the first CA bundle is not recorded in a write without the token: bootstrap waits for relabel', () => {
  const spec = { tls: { peer: { managed: {} } }, additionalMetadata: { labels: { team: 'a' } } };
  const cluster = aCluster({ spec });
  const owned = <T extends { readonly metadata: object }>(o: T): T => ({ ...o, metadata: { ...o.metadata, uid: 'u' } });
  // Services of the earlier operator, which creates them first: ours, without the labels, and drifted.
  const bare = aCluster({ spec: { tls: spec.tls } });
  const drifted = { ...owned(headlessService(bare)), spec: { ports: [] } };
  const plan = decide({
    ...world([]),
    cluster,
    etcd: { is: 'notAsked' },
    pdb: { is: 'absent' },
    services: { headless: { is: 'ours', object: drifted }, client: { is: 'ours', object: owned(clientService(bare)) } },
    certificates: {
      ...NO_CERTIFICATES,
      trusts: [{ ...trust({ target: NEW, next: { step: 'begin', digest: NEW } }), recorded: undefined as never }],
    },
  });
  expect([plan.rule, plan.steps]).toEqual(['bootstrap', []]);
  expect(plan.latch?.trust === undefined || plan.latch.clusterToken !== undefined).toBe(true);
});

test('all objects that cannot be read are named, not Certificates only', () => {
  const tls = { peer: { certManager: { issuerRef: { name: 'i' } } } } as never;
  const o = world([up, up, up], { spec: { tls } });
  const [wanted] = requestedNeeds(o.cluster).map((need) => certificateFor(o.cluster, need, 'cluster.local'));
  if (!wanted) throw new Error('no need');
  const unread = { is: 'unknown', message: 'forbidden' } as const;
  const plan = decide({
    ...o,
    services: { ...o.services, client: unread },
    issuance: { is: 'there', certificates: [{ wanted, holding: unread }] },
  });
  const { message } = findCondition(plan.status.conditions, 'Progressing') ?? {};
  expect(message).toContain('Certificate ');
  expect(message).toContain('Service db-client');
});

test('Secrets that could not be read when members were asked count as unread in that reconcile', async () => {
  const w = modelWorld();
  await runningCluster(w, 1);
  const ref = { namespace: 'ns', name: 'db' };
  putInCache(
    w.clusters,
    await w.client.patch(w.clusters.resource, ref, { spec: { tls: { client: { managed: {} } } } }),
  );
  let now = NOW;
  let failing = true;
  const get: typeof w.client.get = (resource, ...rest) => {
    if (resource.plural === 'secrets' && failing)
      return Promise.reject(new ApiError('GET', 500, { reason: 'InternalError', message: 'no KMS' }));
    return w.client.get(resource, ...rest);
  };
  const options = {
    client: { get },
    now: () => now,
    domain: 'cluster.local',
    look: () => Promise.resolve(undefined),
    mounted: () => ({ running: true, complete: true, bundles: { client: [], peer: [] } }),
    graceMs: 1,
    clockAheadMs: () => 0,
  };
  const credentials = new SecretCache(options);
  let blind = false;
  const access = credentials.access.bind(credentials);
  credentials.access = async (...args) => {
    const found = await access(...args);
    blind = found.tls === undefined;
    return found;
  };
  // KMS recovers while members are asked, which takes more than a second.
  const etcd = new Proxy(w.etcd, {
    get(target, name) {
      failing = failing && name === 'retain'; // everything after `retain` is a request to a member
      if (name !== 'retain') now = NOW + 1_500;
      return Reflect.get(target, name);
    },
  });
  const o = await observe({ ...w, etcd, credentials }, 'ns/db', new AbortController().signal, NO_MEMORY);
  // Without a CA bundle, a real transport connects to no member; the model has no TLS.
  expect([blind, o?.certificates.unreadable !== undefined]).toEqual([true, true]);
});

test('the stages tell the chain that a member joins: the bundle is not narrowed', () => {
  const narrow = { recorded: BOTH, target: NEW, next: { step: 'narrow', digest: NEW } } as const;
  const view = { proven: ['client', 'peer'] } as const;
  const three = (third: Is) => decide(rotating([started(BOTH), started(BOTH), started(BOTH, third)], narrow, { view }));
  expect(three(up).latch?.trust).toMatchObject({ peer: NEW });
  expect(three(joining).latch).toBeUndefined();
});
