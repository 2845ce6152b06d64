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

test('without flags the defaults of earlier operators hold', () => {
  expect(parseFlags([], {})).toEqual({
    metricsBindAddress: ':8080',
    healthProbeBindAddress: ':8081',
    leaderElect: false,
    clusterDomain: 'cluster.local',
    operatorImage: '',
    etcdImageRepository: 'quay.io/coreos/etcd',
    etcdImageAllowed: [],
    nodeLostAfterSeconds: 600,
    rotationGraceSeconds: 120,
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

test('variables are used where no flag says otherwise', () => {
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
  [['--zap-devel'], "error: unknown option '--zap-devel'"],
  [['run'], 'too many arguments'],
  [['--leader-elect=maybe'], '--leader-elect is true or false'],
  [['--kubeconfig'], 'argument missing'],
  [['--operator-image=controller:latest'], 'placeholder'],
])('%j is refused with a sentence and exit code 2', (args, sentence) => {
  const usage = refused(args);
  expect(usage.message).toContain(sentence);
  expect(usage.exitCode).toBe(2);
});

test('--help says what the flags do, and is a success', () => {
  const usage = refused(['--help']);
  expect(usage.exitCode).toBe(0);
  expect(usage.message).toContain('the image of this operator, which snapshots are taken with');
});

test.each([
  ['nameserver 10.96.0.10\nsearch ns.svc.cluster.local svc.cluster.local cluster.local\n', 'cluster.local'],
  ['search ns.svc.example.org svc.example.org. example.org', 'example.org'],
  ['search example.org', 'cluster.local'],
])('the domain of the cluster is that of the Pod: %j', (resolvConf, domain) => {
  expect(parseFlags([], {}, resolvConf).clusterDomain).toBe(domain);
  expect(parseFlags(['--cluster-domain=mine'], {}, resolvConf).clusterDomain).toBe('mine');
});
