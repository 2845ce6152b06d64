import { expect, test } from 'vitest';
import { parseFlags, Usage } from './flags.ts';

const refused = (args: readonly string[], env = {}): Usage => {
  try {
    parseFlags(args, env);
  } catch (error) {
    if (error instanceof Usage) return error;
    throw error;
  }
  throw new Error('was accepted');
};

test('without flags the defaults are those of earlier operators', () => {
  expect(parseFlags([], {})).toEqual({
    metricsBindAddress: ':8080',
    healthProbeBindAddress: ':8081',
    leaderElect: false,
    observeOnly: false,
    clusterDomain: 'cluster.local',
    operatorImage: '',
    etcdImageRepository: 'quay.io/coreos/etcd',
    etcdImageAllowed: [],
    nodeLostAfterSeconds: 600,
    rotationGraceSeconds: 120,
    replacementsPerHour: 10,
    defragmentationsAtOnce: 10,
    maxRollingClusters: 10,
    tenancy: {
      allowAmbientCredentials: false,
      allowedStoreEndpoints: [],
      allowedStoreNetworks: [],
      allowedClusterIssuers: [],
      requireReferenceLabel: false,
      deniedMetadata: [],
    },
    clusterScoped: true,
    podUser: 65532,
    watchNamespaces: [],
    kubeconfig: undefined,
    namespace: undefined,
    logLevel: 'info',
  });
});

test.each([
  [['--leader-elect', '--metrics-bind-address=:9090'], true],
  [['-leader-elect', '-metrics-bind-address', ':9090'], true],
  [['--leader-elect=false', '--metrics-bind-address=:9090'], false],
  [['-leader-elect=true', '--metrics-bind-address=:9090'], true],
])('%j is read as a Go program reads it', (args, leaderElect) => {
  expect(parseFlags(args, {})).toMatchObject({ leaderElect, metricsBindAddress: ':9090' });
});

test.each([
  [['--zap-devel', '--leader-elect'], 'info'],
  [['--zap-devel=true', '--zap-encoder=json', '--zap-stacktrace-level', 'panic', '--leader-elect'], 'info'],
  [['-zap-log-level=debug', '--zap-time-encoding=rfc3339', '--leader-elect'], 'debug'],
  [['--zap-log-level', '5', '--leader-elect'], 'debug'],
  [['--zap-log-level=error', '--leader-elect'], 'error'],
  [['--zap-log-level=error', '--log-level=warn', '--leader-elect'], 'warn'],
])('%j of a Deployment of the Go operator is accepted', (args, logLevel) => {
  expect(parseFlags(args, {})).toMatchObject({ leaderElect: true, logLevel });
});

test('--observe-only is a flag without a value', () => {
  expect(parseFlags(['--observe-only'], {}).observeOnly).toBe(true);
  expect(parseFlags(['--observe-only=false', '--leader-elect'], {})).toMatchObject({
    observeOnly: false,
    leaderElect: true,
  });
});

test('environment variables are used where no flag is set', () => {
  const env = {
    WATCH_NAMESPACE: 'a, b,',
    ETCD_IMAGE_REPOSITORY: 'r/etcd',
    POD_NAMESPACE: 'ops',
    OPERATOR_IMAGE: 'i:1',
  };
  expect(parseFlags([], env)).toMatchObject({
    watchNamespaces: ['a', 'b'],
    etcdImageRepository: 'r/etcd',
    namespace: 'ops',
    operatorImage: 'i:1',
  });
  expect(parseFlags(['--watch-namespace=c', '--etcd-image-repository', 'x'], env)).toMatchObject({
    watchNamespaces: ['c'],
    etcdImageRepository: 'x',
  });
});

test.each([
  [['--zap-unknown'], "error: unknown option '--zap-unknown'"],
  [['run'], 'too many arguments'],
  [['--leader-elect=maybe'], '--leader-elect must be true or false'],
  [['--observe-only=maybe'], '--observe-only must be true or false'],
  [['--replacements-per-hour=few'], '--replacements-per-hour must be a number'],
  [['--defragmentations-at-once=0'], '--defragmentations-at-once must be a number above 0'],
  [['--max-rolling-clusters=-1'], '--max-rolling-clusters must be a number'],
  [['--kubeconfig'], 'argument missing'],
  [['--pod-user=0'], '--pod-user must be a number above 0 or none'],
  [['--cluster-scoped=maybe'], '--cluster-scoped must be true or false'],
  [['--operator-image=controller:latest'], 'placeholder'],
])('%j is refused with a message and exit code 2', (args, message) => {
  const usage = refused(args);
  expect(usage.message).toContain(message);
  expect(usage.exitCode).toBe(2);
});

test('--help describes the flags, with exit code 0', () => {
  const usage = refused(['--help']);
  expect(usage.exitCode).toBe(0);
  expect(usage.message).toContain('image of this operator, which the Jobs of snapshots and restores run');
});

test.each([
  ['nameserver 10.96.0.10\nsearch ns.svc.cluster.local svc.cluster.local cluster.local\n', 'cluster.local'],
  ['search ns.svc.example.org svc.example.org. example.org', 'example.org'],
  ['search example.org', 'cluster.local'],
])('the cluster domain is read from resolv.conf: %j', (resolvConf, domain) => {
  expect(parseFlags([], {}, resolvConf).clusterDomain).toBe(domain);
  expect(parseFlags(['--cluster-domain=mine'], {}, resolvConf).clusterDomain).toBe('mine');
});

test('what tenants may refer to is read from JSON, and what is not stated keeps its default', () => {
  const { tenancy } = parseFlags([], { TENANCY: '{"allowedStoreEndpoints":["s3.example.com"]}' });
  expect(tenancy).toMatchObject({ allowedStoreEndpoints: ['s3.example.com'], requireReferenceLabel: false });
});
test.each([
  '{',
  '[]',
  '"x"',
  '{"requireReferencesLabel":true}',
  '{"requireReferenceLabel":"yes"}',
  '{"deniedMetadata":"x"}',
])('a tenancy that would not do what it seems to stops the operator: %s', (text) => {
  expect(refused([`--tenancy=${text}`]).message).toContain('--tenancy');
});
