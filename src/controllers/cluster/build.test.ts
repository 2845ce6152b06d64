import { expect, test } from 'vitest';
import { aCluster, LATCHED, SEED_NAME } from '../../../test/support/builders/builders.ts';
import { clientService, hasDrifted, headlessService, joiningMember, joinList, pdb, seedMember } from './build.ts';

test('the headless Service', () => {
  expect(headlessService(aCluster())).toMatchSnapshot();
});
test('the client Service', () => {
  expect(clientService(aCluster())).toMatchSnapshot();
});
test('the seed', () => {
  if (!LATCHED.observed) throw new Error('no target');
  expect(seedMember(aCluster(), SEED_NAME, LATCHED.observed, 'token')).toMatchSnapshot();
});

test('the PodDisruptionBudget allows no eviction of unready members while there is no quorum', () => {
  expect(pdb(aCluster(), 2).spec).toMatchObject({ minAvailable: 2, unhealthyPodEvictionPolicy: 'IfHealthyBudget' });
});

test('a joining member does not bootstrap, and its initial cluster does not depend on the order of the member list', () => {
  if (!LATCHED.observed) throw new Error('no target');
  const entries = ['a', 'b'].map((name) => ({ id: name, name, peerURLs: [`http://${name}:2380`], isLearner: false }));
  const joiner = joiningMember(aCluster({ status: LATCHED }), 'b', LATCHED.observed, entries);
  expect(joiner.spec).toMatchObject({
    initialCluster: 'a=http://a:2380,b=http://b:2380',
    clusterToken: LATCHED.clusterToken,
  });
  expect(joiner.spec).not.toHaveProperty('bootstrap');
  expect(joinList(entries.toReversed())).toBe(joinList(entries));
});

const built = headlessService(aCluster());
test.each([
  ['fields that the API server sets', { clusterIPs: ['None'], type: 'ClusterIP', sessionAffinity: 'None' }, false],
  ['a port that the user added', { ports: [...(built.spec?.ports ?? []), { name: 'web', port: 80 }] }, false],
  ['another selector', { selector: { app: 'x' } }, true],
  ['a narrower selector', { selector: { ...built.spec?.selector, a: 'b' } }, true],
  ['a missing port', { ports: [{ name: 'client', port: 2379, protocol: 'TCP' }] }, true],
  ['a renamed port', { ports: (built.spec?.ports ?? []).map((p) => ({ ...p, name: `x${p.name}` })) }, true],
  ['publishNotReadyAddresses is false', { publishNotReadyAddresses: false }, true],
])('%s is drift: %s', (_name, change, drifted) => {
  expect(hasDrifted({ ...built, spec: { ...built.spec, ...change } }, built)).toBe(drifted);
});
