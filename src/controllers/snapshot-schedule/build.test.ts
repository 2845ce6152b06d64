import { expect, test } from 'vitest';
import { aCluster } from '../../../test/support/builders/builders.ts';
import { aRun, aSchedule } from '../../../test/support/builders/schedules.ts';
import { drillJob, jobNames, policyOf, pruneJob } from './build.ts';

const cluster = aCluster({
  spec: { tolerations: [{ key: 'etcd', operator: 'Exists' }], imagePullSecrets: [{ name: 'pull' }] },
});
const of = { schedule: aSchedule({ retention: { keepLast: 3 } }), cluster, operatorImage: 'operator:1' };
const images = { repository: 'quay.io/coreos/etcd', allowed: [] };

test('the prune Job', () => {
  expect(pruneJob({ ...of, run: 'hourly-202603010500', retention: { keepLast: 3 }, now: 1 })).toMatchSnapshot();
});

test('the drill Job', () => {
  expect(drillJob({ ...of, run: aRun('05:00:00'), images })).toMatchSnapshot();
});

test('a drill reads the stored format, with the version and image of the cluster, within its storageSize', () => {
  const made = aRun('05:00:00');
  const run = {
    ...made,
    spec: {
      ...made.spec,
      destination: { pvc: { claimName: 'backups', subPath: 'db' } },
      compression: 'Zstd' as const,
      encryption: { keySecretRef: { name: 'key' } },
    },
  };
  const image = { repository: 'mirror/etcd', digest: `sha256:${'0'.repeat(64)}` };
  const job = drillJob({
    ...of,
    schedule: aSchedule({ drill: { storageSize: '5Gi' } }),
    cluster: aCluster({ spec: { version: '3.5.30', image } }),
    run,
    images,
  });
  const {
    containers: [container],
    volumes,
  } = job.spec?.template.spec ?? { containers: [] };
  expect(container?.image).toBe(`mirror/etcd:v3.5.30@sha256:${'0'.repeat(64)}`);
  expect(JSON.parse(container?.env?.find(({ name }) => name === 'AGENT_TASK')?.value ?? '')).toEqual({
    task: 'drill',
    from: { kind: 'pvc', root: '/restore/src' },
    key: 'db/hourly-202603010500.db.zst.enc',
    encrypted: true,
    version: '3.5.30',
  });
  expect(volumes?.find(({ name }) => name === 'room')?.emptyDir).toEqual({ sizeLimit: '5Gi' });
  expect(volumes?.find(({ name }) => name === 'snapshots')?.persistentVolumeClaim?.readOnly).toBe(true);
});

test('each snapshot and each retention has a Job of its own, and its name is short enough', () => {
  const name = 'a'.repeat(41);
  const long = { ...aSchedule(), metadata: { ...aSchedule().metadata, name } };
  const names = [
    jobNames(long, `${name}-202603010500`),
    jobNames(long, `${name}-202603010600`),
    jobNames({ ...long, spec: { ...long.spec, retention: { keepLast: 1 } } }, `${name}-202603010500`),
  ];
  expect(new Set(names.map(({ prune }) => prune)).size).toBe(3);
  expect(new Set(names.map(({ drill }) => drill)).size).toBe(2);
  for (const job of names.flatMap(({ prune, drill }) => [prune, drill])) expect(job.length).toBeLessThanOrEqual(63);
  expect(policyOf(aSchedule({ retention: { keepLast: 1 } }))).toBe(policyOf(aSchedule({ retention: { keepLast: 1 } })));
});
