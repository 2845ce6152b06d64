import { describe, expect, test } from 'vitest';
import { aMember, SEED_NAME } from '../../../test/support/builders/builders.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import {
  INITIAL_CHECK_ANNOTATION,
  INITIAL_CLUSTER_ANNOTATION,
  INITIAL_STATE_ANNOTATION,
  TEMPLATE_ANNOTATION,
} from '../../api/names.ts';
import { memberPod, volumeClaim } from './build.ts';

const options = {
  imageRepository: 'quay.io/coreos/etcd',
  initialState: 'cluster',
  votes: false,
  hasCompany: false,
} as const;

test('the Pod of a seed', () => {
  expect(memberPod(aMember(), options)).toMatchSnapshot();
});

test('the Pod of a member that votes carries the role that the client Service selects', () => {
  expect(memberPod(aMember(), { ...options, votes: true }).metadata.labels?.['etcd-operator.cozystack.io/role']).toBe(
    'voter',
  );
});

test('a joining member reads the member list at every start, and a joined one cannot join again', () => {
  const list = 'a=http://a:2380,b=http://b:2380';
  const joiner = aMember({ spec: { bootstrap: false, initialCluster: list } });
  const joining = memberPod(joiner, { ...options, initialState: 'member' });
  expect(joining.metadata.annotations).toMatchObject({ [INITIAL_CLUSTER_ANNOTATION]: list });
  expect(joining.spec?.containers[0]?.command).toContain('--initial-cluster=$(INITIAL_CLUSTER)');
  expect(joining.spec?.containers[0]?.env).toContainEqual({
    name: 'INITIAL_CLUSTER',
    valueFrom: { fieldRef: { fieldPath: `metadata.annotations['${INITIAL_CLUSTER_ANNOTATION}']` } },
  });
  const joined = memberPod(joiner, { ...options, initialState: 'nothing' });
  const name = joiner.metadata.name ?? '';
  expect(joined.spec?.containers[0]?.command).toContain(`--initial-cluster=${name}=http://${name}.db.ns.svc:2380`);
  expect(joined.spec?.containers[0]?.command).toContain('--initial-cluster-state=existing');
  expect(Object.keys(joined.metadata.annotations ?? {})).toEqual([INITIAL_CHECK_ANNOTATION, TEMPLATE_ANNOTATION]);
});

test('a joined member never bootstraps', () => {
  const command = memberPod(aMember(), { ...options, initialState: 'member' }).spec?.containers[0]?.command;
  expect(command).toContain('--initial-cluster-state=existing');
});

test.each([
  ['3.4.30', '/health?exclude=NOSPACE'],
  ['3.5.0', '/health?exclude=NOSPACE'],
  ['3.5.10', '/health?exclude=NOSPACE'],
  ['3.5.11', '/readyz'],
  ['3.6.0', '/readyz'],
  ['4.0.0', '/readyz'],
])('the readiness probe of etcd %s is %s', (version, path) => {
  const [container] = memberPod(aMember({ spec: { version } }), options).spec?.containers ?? [];
  expect(container?.readinessProbe?.httpGet?.path).toBe(path);
});

test('in-memory data is a tmpfs of the requested size', () => {
  const member = aMember({ spec: { storage: { size: '64Mi', medium: 'Memory' } } });
  expect(memberPod(member, options).spec?.volumes).toEqual([
    { name: 'data', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } },
  ]);
});

test('the volume', () => {
  expect(volumeClaim(aMember())).toMatchSnapshot();
});

test.each([
  [undefined, undefined],
  ['', ''],
  ['fast', 'fast'],
])('storage class %j becomes %j in the PVC', (storageClassName, asked) => {
  const storage = {
    size: 1073741824,
    medium: '',
    ...(storageClassName !== undefined && { storageClassName }),
  } as const;
  const { spec } = volumeClaim(aMember({ spec: { storage } }));
  expect([spec?.storageClassName, spec?.resources?.requests]).toEqual([asked, { storage: '1073741824' }]);
});

describe('the Pod options of a cluster', () => {
  const podOf = (spec: Partial<EtcdMember['spec']>) => memberPod(aMember({ spec }), options);

  test.each<[string, Partial<EtcdMember['spec']>, string]>([
    ['nothing', {}, 'quay.io/coreos/etcd:v3.6.16'],
    ['another repository', { image: { repository: 'mirror/etcd' } }, 'mirror/etcd:v3.6.16'],
    ['a digest', { image: { digest: 'sha256:aa' } }, 'quay.io/coreos/etcd:v3.6.16@sha256:aa'],
  ])('image: %s', (_what, spec, image) => {
    expect(podOf(spec).spec?.containers[0]?.image).toBe(image);
  });

  test('further flags come last', () => {
    expect(podOf({ extraArgs: ['--pre-vote'] }).spec?.containers[0]?.command?.at(-1)).toBe('--pre-vote');
  });

  test.each<[string, EtcdMember['spec']['resources'], object]>([
    ['nothing', undefined, { requests: { cpu: '100m', memory: '128Mi' } }],
    ['an empty object', {}, { requests: { cpu: '100m', memory: '128Mi' } }],
    ['only a limit', { limits: { memory: '1Gi' } }, { limits: { memory: '1Gi' } }],
    ['numbers', { requests: { cpu: 2 } }, { requests: { cpu: '2' } }],
  ])('resources: %s', (_what, resources, expected) => {
    expect(podOf(resources ? { resources } : {}).spec?.containers[0]?.resources).toEqual(expected);
  });

  test('S9: the restricted Pod Security Standard cannot be overridden', () => {
    expect(
      podOf({ podSecurityContext: { runAsUser: 1000, fsGroupChangePolicy: 'Always' } }).spec?.securityContext,
    ).toEqual({
      runAsNonRoot: true,
      runAsUser: 1000,
      runAsGroup: 65532,
      fsGroup: 65532,
      fsGroupChangePolicy: 'Always',
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  test('additional labels and annotations are added; a user cannot set those of the operator', () => {
    const additionalMetadata = {
      labels: { team: 'a', 'app.kubernetes.io/name': 'x', 'etcd-operator.cozystack.io/role': 'voter' },
      annotations: { note: 'b', 'etcd-operator.cozystack.io/allow-deletion': 'true' },
    };
    const { labels, annotations } = podOf({ additionalMetadata }).metadata;
    expect(labels).toMatchObject({ team: 'a', 'app.kubernetes.io/name': 'etcd' });
    expect(labels).not.toHaveProperty('etcd-operator.cozystack.io/role');
    expect(annotations).toEqual({
      note: 'b',
      [INITIAL_STATE_ANNOTATION]: 'new',
      [INITIAL_CHECK_ANNOTATION]: 'false',
      [TEMPLATE_ANNOTATION]: expect.any(String),
    });
    expect(volumeClaim(aMember({ spec: { additionalMetadata } })).metadata.labels).toMatchObject({ team: 'a' });
  });

  test.each([
    ['container.apparmor.security.beta.kubernetes.io/etcd', false, false],
    ['seccomp.security.alpha.kubernetes.io/pod', false, false],
    ['container.seccomp.security.alpha.kubernetes.io/etcd', false, false],
    ['kubernetes.io/config.mirror', false, false],
    ['kubernetes.io/config.source', false, false],
    ['volume.beta.kubernetes.io/storage-class', true, false],
    ['volume.kubernetes.io/selected-node', true, false],
    ['pv.kubernetes.io/bind-completed', true, false],
    ['example.com/volume.kubernetes.io', true, true],
    ['prometheus.io/scrape', true, true],
  ])('annotation %s: on the Pod %j, on the volume %j', (key, onPod, onVolume) => {
    const additionalMetadata = { annotations: { [key]: 'x' } };
    const carried = [podOf({ additionalMetadata }), volumeClaim(aMember({ spec: { additionalMetadata } }))].map(
      ({ metadata }) => metadata.annotations?.[key] !== undefined,
    );
    expect(carried).toEqual([onPod, onVolume]);
  });

  test('tolerations, node selector, priority, grace and pull secrets are passed on', () => {
    const spec = {
      tolerations: [{ operator: 'Exists' as const }],
      nodeSelector: { a: 'b' },
      priorityClassName: 'high',
      terminationGracePeriodSeconds: 60,
      imagePullSecrets: [{ name: 'pull' }],
    };
    expect(podOf(spec).spec).toMatchObject(spec);
  });
});

describe('before etcd gets SIGTERM', () => {
  test.each<[string, number | undefined, number | undefined]>([
    ['it goes on until nodes have taken it out of the client Service', undefined, 2],
    ['with a long grace period no longer', 60, 2],
    ['with a short one for at most half of it, because etcd needs time to stop', 3, 1],
    ['with none not at all: the API server would refuse the Pod', 0, undefined],
  ])('%s', (_what, terminationGracePeriodSeconds, seconds) => {
    const spec = terminationGracePeriodSeconds === undefined ? {} : { terminationGracePeriodSeconds };
    const [etcd] = memberPod(aMember({ spec }), options).spec?.containers ?? [];
    expect(etcd?.lifecycle?.preStop?.sleep?.seconds).toBe(seconds);
  });
});

describe('members keep apart', () => {
  const placed = (spec: Partial<EtcdMember['spec']>) => {
    const { affinity, topologySpreadConstraints } = memberPod(aMember({ spec }), options).spec ?? {};
    const {
      preferredDuringSchedulingIgnoredDuringExecution: soft,
      requiredDuringSchedulingIgnoredDuringExecution: hard,
    } = affinity?.podAntiAffinity ?? {};
    return `nodes ${hard ? 'required' : soft ? 'preferred' : 'any'}, zones ${topologySpreadConstraints?.[0]?.whenUnsatisfiable ?? 'any'}`;
  };
  const antiAffinity = { podAntiAffinity: {} };
  test.each<[string, Partial<EtcdMember['spec']>, string]>([
    ['by preference', { spread: 'Preferred' }, 'nodes preferred, zones ScheduleAnyway'],
    ['required', { spread: 'Required' }, 'nodes required, zones ScheduleAnyway'],
    ['not at all', { spread: 'None' }, 'nodes any, zones any'],
    ['not when the earlier operator made them', { spread: undefined } as never, 'nodes any, zones any'],
    ['by the affinity of the user', { spread: 'Preferred', affinity: antiAffinity }, 'nodes any, zones ScheduleAnyway'],
    [
      'by the topologySpreadConstraints of the user',
      { spread: 'Required', topologySpreadConstraints: [] },
      'nodes required, zones any',
    ],
  ])('%s', (_what, spec, expected) => {
    expect(placed(spec)).toBe(expected);
  });

  test('and the node affinity of the user is kept', () => {
    const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: [] };
    const { affinity } =
      memberPod(aMember({ spec: { spread: 'Required', affinity: { nodeAffinity } } }), options).spec ?? {};
    expect(affinity?.nodeAffinity).toEqual(nodeAffinity);
    expect(affinity?.podAntiAffinity).toBeDefined();
  });
});

describe('a member that was taken over', () => {
  const taken = (annotations: Readonly<Record<string, string>>) => {
    const member = aMember();
    return memberPod({ ...member, metadata: { ...member.metadata, annotations } }, options).spec;
  };
  test('keeps its addresses and its data where they are', () => {
    const spec = taken({
      'etcd-operator.cozystack.io/headless-service-name': 'db-headless',
      'etcd-operator.cozystack.io/data-dir-subpath': 'default.etcd',
    });
    expect(spec?.subdomain).toBe('db-headless');
    expect(spec?.containers[0]?.command).toEqual(
      expect.arrayContaining([
        '--data-dir=/var/lib/etcd/default.etcd',
        `--initial-advertise-peer-urls=http://${aMember().metadata.name}.db-headless.ns.svc:2380`,
      ]),
    );
  });
  test.each(['..', '../x', '/etc', 'a/b', '', '.hidden'])(
    'keeps its data directory inside of its volume with subpath %j',
    (path) => {
      const spec = taken({ 'etcd-operator.cozystack.io/data-dir-subpath': path });
      expect(spec?.containers[0]?.command).toContain('--data-dir=/var/lib/etcd');
    },
  );
});

describe('with certificates', () => {
  const both = {
    clientServerSecretRef: { name: 'db-server-mounted' },
    clientMTLS: true,
    peerSecretRef: { name: 'db-peer-mounted' },
  };
  const flagsOf = (tls: EtcdMember['spec']['tls']) => {
    const pod = memberPod(aMember({ spec: { ...(tls && { tls }) } }), options);
    return { pod, flags: pod.spec?.containers[0]?.command ?? [] };
  };

  test('peers must have the name of the cluster in their certificates, if the member was created so', () => {
    const pinned = '--peer-cert-allowed-hostname=peer.db.ns.svc';
    expect(flagsOf({ ...both, peerCertAllowedHostname: 'peer.db.ns.svc' }).flags.at(-1)).toBe(pinned);
    expect(flagsOf(both).flags.join()).not.toContain('allowed-hostname');
    expect(flagsOf({ peerCertAllowedHostname: 'peer.db.ns.svc' }).flags).not.toContain(pinned);
  });

  test('peers have self-signed certificates where the earlier operator ran them so, and never beside real ones', () => {
    const { pod, flags } = flagsOf({ peerAutoTLS: true });
    expect(flags.at(-1)).toBe('--peer-auto-tls');
    expect(flags.filter((flag) => flag.includes('peer') && flag.includes('://'))).toEqual([
      '--listen-peer-urls=https://0.0.0.0:2380',
      `--initial-advertise-peer-urls=https://${SEED_NAME}.db.ns.svc:2380`,
    ]);
    expect(flags).toContain(`--initial-cluster=${SEED_NAME}=https://${SEED_NAME}.db.ns.svc:2380`);
    expect(pod.spec?.volumes).toHaveLength(1);
    expect(flagsOf({ ...both, peerAutoTLS: true }).flags).toEqual(flagsOf(both).flags);
  });

  test('the client and peer ports use TLS, and the metrics port for probes does not', () => {
    const { pod, flags } = flagsOf(both);
    expect(flags.filter((flag) => flag.includes('://'))).toEqual([
      '--listen-peer-urls=https://0.0.0.0:2380',
      '--listen-client-urls=https://0.0.0.0:2379',
      `--advertise-client-urls=https://${SEED_NAME}.db.ns.svc:2379`,
      `--initial-advertise-peer-urls=https://${SEED_NAME}.db.ns.svc:2380`,
      `--initial-cluster=${SEED_NAME}=https://${SEED_NAME}.db.ns.svc:2380`,
      '--listen-metrics-urls=http://0.0.0.0:2381',
    ]);
    expect(flags.filter((flag) => flag.includes('/etc/etcd/tls') || flag.includes('cert-auth'))).toEqual([
      '--cert-file=/etc/etcd/tls/client/tls.crt',
      '--key-file=/etc/etcd/tls/client/tls.key',
      '--client-cert-auth=true',
      '--trusted-ca-file=/etc/etcd/tls/client/ca.crt',
      '--peer-cert-file=/etc/etcd/tls/peer/tls.crt',
      '--peer-key-file=/etc/etcd/tls/peer/tls.key',
      '--peer-trusted-ca-file=/etc/etcd/tls/peer/ca.crt',
      '--peer-client-cert-auth=true',
    ]);
    expect(pod.spec?.volumes?.slice(1)).toEqual([
      { name: 'tls-client', secret: { secretName: 'db-server-mounted', defaultMode: 0o440 } },
      { name: 'tls-peer', secret: { secretName: 'db-peer-mounted', defaultMode: 0o440 } },
    ]);
    expect(pod.spec?.containers[0]?.volumeMounts?.slice(1)).toEqual([
      { name: 'tls-client', mountPath: '/etc/etcd/tls/client', readOnly: true },
      { name: 'tls-peer', mountPath: '/etc/etcd/tls/peer', readOnly: true },
    ]);
    expect(pod.spec?.containers[0]?.readinessProbe).toEqual(flagsOf(undefined).pod.spec?.containers[0]?.readinessProbe);
  });

  test('the CA bundle comes from immutable Secrets, also for a member of an earlier operator', () => {
    const trust = { client: 'a'.repeat(64), peer: 'b'.repeat(64) };
    const volumes = (tls: EtcdMember['spec']['tls']) =>
      memberPod(aMember({ spec: { ...(tls && { tls }) } }), { ...options, trust }).spec?.volumes?.slice(1);
    const projected = (leaf: string, bundle: string) => ({
      defaultMode: 0o440,
      sources: [
        {
          secret: {
            name: leaf,
            items: [
              { key: 'tls.crt', path: 'tls.crt' },
              { key: 'tls.key', path: 'tls.key' },
            ],
          },
        },
        { secret: { name: bundle, items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      ],
    });
    const mounts = [
      { name: 'tls-client', projected: projected('db-server-mounted', 'db-client-trust-aaaaaaaaaa') },
      { name: 'tls-peer', projected: projected('db-peer-mounted', 'db-peer-trust-bbbbbbbbbb') },
    ];
    expect(volumes(both)).toEqual(mounts);
    const earlier = { clientServerSecretRef: { name: 'mine' }, clientMTLS: true, peerSecretRef: { name: 'theirs' } };
    expect(volumes(earlier)).toEqual(mounts);
    // Without mTLS, etcd reads no CA bundle for clients.
    expect(volumes({ clientServerSecretRef: { name: 'mine' } })).toEqual([
      { name: 'tls-client', secret: { secretName: 'db-server-mounted', defaultMode: 0o440 } },
    ]);
  });

  test('client certificates are required only with mTLS', () => {
    const { flags } = flagsOf({ clientServerSecretRef: { name: 's' } });
    expect(flags.filter((flag) => /cert-auth|trusted-ca|peer-cert/.test(flag))).toEqual([]);
    expect(flags).toContain('--listen-peer-urls=http://0.0.0.0:2380');
  });
});
