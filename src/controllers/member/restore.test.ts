import { describe, expect, test } from 'vitest';
import { aMember, SEED_NAME } from '../../../test/support/builders/builders.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { INITIAL_STATE_ANNOTATION } from '../../api/names.ts';
import { RESULT_FILE, STATE_VARIABLE, TASK_VARIABLE } from '../../domain/agent-task.ts';
import type { Pod } from '../../gen/kube.ts';
import { memberPod } from './build.ts';

const options = {
  imageRepository: 'quay.io/coreos/etcd',
  initialState: 'cluster',
  votes: false,
  hasCompany: false,
  restore: { operatorImage: 'example.com/operator:1', auth: false },
} as const;
const s3 = {
  endpoint: 'https://s3.example.com',
  bucket: 'b',
  key: 'a/x.db',
  credentialsSecretRef: { name: 'keys' },
  caSecretRef: { name: 'store-ca' },
};
const seed = (restore: EtcdMember['spec']['restore']): EtcdMember => aMember({ spec: { ...(restore && { restore }) } });
const podOf = (restore: EtcdMember['spec']['restore'], more = {}): Pod =>
  memberPod(seed(restore), { ...options, ...more });
const taskOf = (pod: Pod): unknown =>
  JSON.parse(pod.spec?.initContainers?.[1]?.env?.find(({ name }) => name === TASK_VARIABLE)?.value ?? '{}');

test('the Pod of a seed that restores a snapshot', () => {
  expect(podOf({ source: { s3 }, encryption: { keySecretRef: { name: 'secret-key' } } })).toMatchSnapshot();
});

describe('a seed that restores a snapshot', () => {
  const pvc = { claimName: 'backups', subPath: 'nightly/x.db' };

  test('never bootstraps an empty cluster instead, not even when its data directory is emptied', () => {
    const stateOf = (pod: Pod) => pod.spec?.containers[0]?.command?.find((arg) => arg.includes('cluster-state'));
    expect(stateOf(podOf({ source: { pvc } }))).toBe('--initial-cluster-state=existing');
    expect(stateOf(podOf(undefined))).toBe('--initial-cluster-state=$(INITIAL_CLUSTER_STATE)');
  });

  test('reads at every start whether the cluster is bootstrapped: init containers run again after a node restart', () => {
    const { metadata, spec } = podOf({ source: { pvc } });
    expect(spec?.initContainers?.[1]?.env).toContainEqual({
      name: STATE_VARIABLE,
      valueFrom: { fieldRef: { fieldPath: `metadata.annotations['${INITIAL_STATE_ANNOTATION}']` } },
    });
    expect(metadata.annotations).toMatchObject({ [INITIAL_STATE_ANNOTATION]: 'new' });
  });

  test('has the Secrets and the volume of the copy at places of their own', () => {
    const checksum = `sha256:${'a'.repeat(64)}`;
    const pod = podOf({
      source: { s3, copy: { s3: { ...s3, key: 'b/x.db', serviceAccountName: 'reader' } }, checksum },
    });
    const mounts = pod.spec?.initContainers?.[1]?.volumeMounts?.map(({ name, mountPath }) => `${name} ${mountPath}`);
    expect(mounts).toEqual(
      expect.arrayContaining([
        'store /agent/store',
        'copy-store /agent/copy-store',
        'copy-store-ca /agent/copy-store-ca',
      ]),
    );
    expect(pod.spec?.serviceAccountName).toBe('reader');
    expect(taskOf(pod)).toMatchObject({
      key: 'a/x.db',
      copy: { key: 'b/x.db', from: { kind: 's3' } },
      sha256: 'a'.repeat(64),
    });
    const onVolume = podOf({ source: { pvc, copy: { pvc: { claimName: 'second', subPath: 'x.db' } }, checksum } });
    expect(onVolume.spec?.initContainers?.[1]?.volumeMounts).toContainEqual({
      name: 'copies',
      mountPath: '/copy/data',
      readOnly: true,
    });
    expect(new Set(onVolume.spec?.volumes?.map(({ name }) => name)).size).toBe(onVolume.spec?.volumes?.length);
  });

  test('reads a volume, and cannot write to it', () => {
    const { spec } = podOf({ source: { pvc } });
    expect(spec?.volumes).toContainEqual({
      name: 'snapshots',
      persistentVolumeClaim: { claimName: 'backups', readOnly: true },
    });
    expect(spec?.initContainers?.[1]?.volumeMounts).toContainEqual({
      name: 'snapshots',
      mountPath: '/restore/src',
      readOnly: true,
    });
  });

  test('gives the agent its whole task, and nothing that is secret', () => {
    expect(taskOf(podOf({ source: { pvc } }))).toEqual({
      task: 'restore',
      from: { kind: 'pvc', root: '/restore/src' },
      key: 'nightly/x.db',
      encrypted: false,
      dataDir: '/var/lib/etcd',
      scratch: '/fetched',
      member: SEED_NAME,
      initialCluster: `${SEED_NAME}=http://${SEED_NAME}.db.ns.svc:2380`,
      token: seed(undefined).spec.clusterToken,
      peerURL: `http://${SEED_NAME}.db.ns.svc:2380`,
      bumpRevision: 1_000_000_000,
      version: '3.6.16',
      auth: false,
    });
    expect(taskOf(podOf({ source: { pvc }, bumpRevision: 0 }))).toMatchObject({ bumpRevision: 0 });
    const auth = { restore: { ...options.restore, auth: true } };
    expect(taskOf(podOf({ source: { pvc } }, auth))).toMatchObject({ auth: true });
  });

  test('hands the expected checksum to the agent, and that root gets a new password', () => {
    const checksum = `sha256:${'ab'.repeat(32)}`;
    expect(taskOf(podOf({ source: { pvc, checksum }, resetRootPassword: true }))).toMatchObject({
      sha256: 'ab'.repeat(32),
      resetRootPassword: true,
    });
  });

  test('downloads to the disk of the node: its own volume needs room for the database only once', () => {
    const { spec } = podOf({ source: { pvc } });
    expect(spec?.volumes).toContainEqual({ name: 'fetched', emptyDir: {} });
    expect(spec?.initContainers?.[1]?.volumeMounts).toContainEqual({ name: 'fetched', mountPath: '/fetched' });
    expect(spec?.containers[0]?.volumeMounts?.map(({ name }) => name)).not.toContain('fetched');
  });

  test.each<[string, Partial<EtcdMember['spec']>, string]>([
    ['a small volume', { storage: { size: '1Gi', medium: '' } }, '1024Mi'],
    ['a volume of 16 GiB', { storage: { size: '16Gi', medium: '' } }, '2048Mi'],
    ['a volume of 1 TiB, within what a LimitRange may allow', { storage: { size: '1Ti', medium: '' } }, '4096Mi'],
    ['members that may use more', { resources: { limits: { memory: '8Gi' } } }, '8192Mi'],
    [
      'an amount that the user states',
      { restore: { source: { pvc }, resources: { limits: { memory: '3Gi' } } } },
      '3Gi',
    ],
  ])('may use memory by the size of its database: %s', (_what, spec, memory) => {
    const member = aMember({ spec: { restore: { source: { pvc } }, ...spec } });
    const agent = memberPod(member, options).spec?.initContainers?.[1];
    expect(agent?.resources).toEqual({ requests: { cpu: '100m', memory: '128Mi' }, limits: { memory } });
  });

  test('has the ServiceAccount of its cloud identity, and a seed without one has none', () => {
    const { credentialsSecretRef: _, ...ambient } = { ...s3, serviceAccountName: 'reader' };
    expect(podOf({ source: { s3: ambient } }).spec?.serviceAccountName).toBe('reader');
    expect(podOf({ source: { s3 } }).spec).not.toHaveProperty('serviceAccountName');
  });

  test('writes its result to the termination message, and meets the restricted Pod Security Standard', () => {
    for (const container of podOf({ source: { s3 } }).spec?.initContainers ?? []) {
      expect(container.terminationMessagePolicy).toBe('File');
      expect(container.terminationMessagePath ?? RESULT_FILE).toBe(RESULT_FILE);
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
    }
  });

  test('uses the tool of the etcd image that it starts afterwards', () => {
    const { initContainers = [], containers = [] } = podOf({ source: { s3 } }).spec ?? {};
    expect(initContainers.map(({ image }) => image)).toEqual(['example.com/operator:1', containers[0]?.image]);
  });
});

test.each([
  ['a member that joins', { source: { s3 } }, { initialState: 'member' }],
  ['a seed whose cluster is recorded', { source: { s3 } }, { initialState: 'nothing' }],
  ['a seed without spec.restore', undefined, {}],
])('%s has no restore', (_name, restore, more) => {
  const { spec } = podOf(restore, more);
  expect(spec).not.toHaveProperty('initContainers');
  expect(spec?.volumes?.map(({ name }) => name)).toEqual(['data']);
});
