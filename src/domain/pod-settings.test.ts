import { expect, test } from 'vitest';
import { aCluster, aMember, FORMED } from '../../test/support/builders/builders.ts';
import { aSnapshot, aVoter } from '../../test/support/builders/snapshot.ts';
import { memberPod } from '../controllers/member/build.ts';
import { snapshotJob } from '../controllers/snapshot/build.ts';
import type { Pod, PodSpec } from '../gen/kube.ts';
import { isDefault, withPodSettings } from './pod-settings.ts';

const member = (podSecurityContext = {}): Pod =>
  memberPod(aMember({ spec: { podSecurityContext } }), {
    imageRepository: 'r/etcd',
    initialState: 'nothing',
    votes: true,
    hasCompany: true,
  });
const agent = () =>
  snapshotJob({
    object: aSnapshot(),
    cluster: aCluster({ status: FORMED }),
    sources: {},
    image: 'i',
    member: aVoter(2),
  });
const ids = ({ securityContext }: PodSpec) => [
  securityContext?.runAsUser,
  securityContext?.runAsGroup,
  securityContext?.fsGroup,
];
const shaped = (user: number | 'none', storeEndpoints: readonly string[] = []) => {
  const settings = { user, storeEndpoints };
  const job = withPodSettings(agent(), settings).spec?.template.spec;
  const pod = withPodSettings(member({ fsGroup: 7 }), settings).spec;
  if (!job || !pod) throw new Error('both have a spec');
  return { job, pod };
};

test('S9: the user of members and agents is another one, or is left to OpenShift; what a spec states stays', () => {
  const other = shaped(1000);
  expect([ids(other.job), ids(other.pod)]).toEqual([
    [1000, 1000, 1000],
    [1000, 1000, 7],
  ]);
  const none = shaped('none');
  expect([ids(none.job), ids(none.pod)]).toEqual([
    [undefined, undefined, undefined],
    [undefined, undefined, 7],
  ]);
  for (const spec of [none.job, none.pod])
    expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
});

test('S4: agents get the list of allowed stores, and members, which connect to none, do not', () => {
  const { job, pod } = shaped(65532, ['s3.example.com']);
  const list = { name: 'AGENT_STORE_ENDPOINTS', value: '["s3.example.com"]' };
  expect(job.containers[0]?.env).toContainEqual(list);
  expect(JSON.stringify(pod)).not.toContain(list.name);
});

test('with the defaults, nothing is changed, and never anything but Pods and Jobs', () => {
  expect(isDefault({ user: 65532, storeEndpoints: [] })).toBe(true);
  expect(isDefault({ user: 'none', storeEndpoints: [] })).toBe(false);
  expect(isDefault({ user: 65532, storeEndpoints: ['x'] })).toBe(false);
  expect(withPodSettings(member(), { user: 65532, storeEndpoints: [] })).toEqual(member());
  const cluster = aCluster();
  expect(withPodSettings(cluster, { user: 'none', storeEndpoints: ['x'] })).toBe(cluster);
});
