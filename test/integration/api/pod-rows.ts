/** The fields of an EtcdCluster that become fields of Pods. Each spec is added to `version: 3.6.16`. */
import { type EditRow, type Row, ref } from './row.ts';

const resources = (requests?: object, limits?: object) => ({
  resources: { ...(requests && { requests }), ...(limits && { limits }) },
});
const metadata = (additionalMetadata: object) => ({ additionalMetadata });
const security = (podSecurityContext: object) => ({ podSecurityContext });
const DIGEST = `sha256:${'a'.repeat(64)}`;
const OTHER_DIGEST = `sha256:${'b'.repeat(64)}`;

export const specs: readonly Row[] = [
  ['requests', resources({ cpu: '500m', memory: '1Gi' })],
  ['limits', resources(undefined, { cpu: 2, memory: '2Gi' })],
  ['requests up to limits', resources({ cpu: '1' }, { cpu: '1000m' })],
  [
    'requests above limits',
    resources({ memory: '2Gi' }, { memory: '1Gi' }),
    'resources.requests asks for more than resources.limits allows',
  ],
  ['less than nothing', resources({ cpu: '-1' }), 'resources.requests has a value that is negative'],
  [
    'less than nothing as a limit',
    resources(undefined, { cpu: '-1' }),
    'resources.limits has a value that is negative',
  ],
  ['an amount that is none', resources({ cpu: 'much' }), 'spec.resources.requests.cpu'],
  ['a resource that is none', resources({ disk: '1' }), 'resources.requests has a name that is not a resource'],
  ['a limit that is none', resources(undefined, { disk: '1' }), 'resources.limits has a name that is not a resource'],
  ['scratch space', resources({ 'ephemeral-storage': '1Gi' })],
  ['huge pages', resources({ 'hugepages-2Mi': '4Mi', memory: '1Gi' }, { 'hugepages-2Mi': '4Mi' })],
  [
    'huge pages alone',
    resources(undefined, { 'hugepages-2Mi': '4Mi' }),
    'resources with hugepages also need cpu or memory',
  ],
  ['a fraction of huge pages', resources({ memory: '2Gi' }, { 'hugepages-2Mi': '1.5Gi' })],
  [
    'a fraction of a byte of huge pages',
    resources({ memory: '2Gi' }, { 'hugepages-2Mi': '0.1Ki' }),
    'must be integers',
  ],
  ['something of a vendor', resources(undefined, { 'vendor.com/nvme': 1 })],
  ['half of something of a vendor', resources(undefined, { 'vendor.com/nvme': '500m' }), 'must be integers'],
  [
    'half of something of a vendor, requested',
    resources({ 'vendor.com/nvme': '500m' }, { 'vendor.com/nvme': 1 }),
    'must be integers',
  ],
  ['something of a vendor without a limit', resources({ 'vendor.com/nvme': 1 }), 'must equal its limit'],
  ['claims', { resources: { claims: [ref('x')] } }, 'resources.claims cannot be used'],
  ['no claims', { resources: { claims: [] } }],

  [
    'a label and an annotation',
    metadata({
      labels: { 'team.example.com/name': 'storage', a: '' },
      annotations: { 'Example.com/Note': 'any text, ü' },
    }),
  ],
  [
    'a label key with a space',
    metadata({ labels: { 'my team': 'a' } }),
    'additionalMetadata.labels has a key that cannot be a label',
  ],
  [
    'a label key that is empty',
    metadata({ labels: { '': 'a' } }),
    'additionalMetadata.labels has a key that cannot be a label',
  ],
  [
    'a label key with two slashes',
    metadata({ labels: { 'a/b/c': 'a' } }),
    'additionalMetadata.labels has a key that cannot be a label',
  ],
  [
    'a label key that is too long',
    metadata({ labels: { ['a'.repeat(64)]: 'a' } }),
    'additionalMetadata.labels has a key that cannot be a label',
  ],
  [
    'a label key with an upper-case prefix',
    metadata({ labels: { 'A.b/c': 'a' } }),
    'additionalMetadata.labels has a key that cannot be a label',
  ],
  ['a label value with a space', metadata({ labels: { a: 'b c' } }), 'spec.additionalMetadata.labels.a'],
  ['a label value that is too long', metadata({ labels: { a: 'b'.repeat(64) } }), 'spec.additionalMetadata.labels.a'],
  [
    'an annotation key with a space',
    metadata({ annotations: { 'my note': 'a' } }),
    'additionalMetadata.annotations has a key that cannot be an annotation',
  ],
  [
    'annotations that are too long',
    metadata({ annotations: { a: 'x'.repeat(40_000), b: 'x'.repeat(40_000) } }),
    'additionalMetadata.annotations has more than 65536 characters',
  ],

  ['a Secret to pull with', { imagePullSecrets: [ref('pull')] }],
  ['a Secret to pull with, unnamed', { imagePullSecrets: [{}] }, 'imagePullSecrets[].name is empty'],
  ['a repository', { image: { repository: 'registry.example.com:5000/mirror/etcd' } }],
  ['a digest', { image: { digest: DIGEST } }],
  ['an image that says nothing', { image: {} }, 'image is empty: set repository or digest, or leave image out'],
  ['a repository with a tag', { image: { repository: 'quay.io/coreos/etcd:v3.6.16' } }, 'spec.image.repository'],
  ['a repository with a space', { image: { repository: 'quay.io/coreos etcd' } }, 'spec.image.repository'],
  ['a digest that is none', { image: { digest: 'sha256:abc' } }, 'spec.image.digest'],
  ['a priority', { priorityClassName: 'high' }],
  ['a priority that cannot be one', { priorityClassName: 'High!' }, 'spec.priorityClassName'],
  ['time to stop', { terminationGracePeriodSeconds: 60 }],
  ['no time to stop', { terminationGracePeriodSeconds: 0 }, 'spec.terminationGracePeriodSeconds'],
  [
    'another user',
    security({
      runAsUser: 1000,
      runAsGroup: 1000,
      fsGroup: 1000,
      fsGroupChangePolicy: 'OnRootMismatch',
      supplementalGroups: [5],
      seLinuxOptions: { level: 's0:c1,c2' },
    }),
  ],
  ['root', security({ runAsUser: 0 }), 'spec.podSecurityContext.runAsUser'],
  ['the group of root', security({ supplementalGroups: [0] }), 'spec.podSecurityContext.supplementalGroups[0]'],
  [
    'what the restricted level demands, turned off',
    security({ runAsNonRoot: false }),
    'unknown field "spec.podSecurityContext.runAsNonRoot"',
  ],
  [
    'another seccomp profile',
    security({ seccompProfile: { type: 'Unconfined' } }),
    'unknown field "spec.podSecurityContext.seccompProfile"',
  ],
  ['an SELinux level that is none', security({ seLinuxOptions: { level: 'top' } }), 'seLinuxOptions.level'],
];

export const edits: readonly EditRow[] = [
  ['another priority', { priorityClassName: 'a' }, { priorityClassName: 'b' }],
  [
    'a new version with its digest',
    { version: '3.6.15', image: { digest: DIGEST } },
    { version: '3.6.16', image: { digest: OTHER_DIGEST } },
  ],
  [
    'a new version with the old digest',
    { version: '3.6.15', image: { digest: DIGEST } },
    { version: '3.6.16', image: { digest: DIGEST } },
    'image.digest pins the image of the old version',
  ],
  ['a new version without a digest', { version: '3.6.15', image: { digest: DIGEST } }, { version: '3.6.16' }],
];
