import { expect, test } from 'vitest';
import { explain } from './command.ts';

const image = (architecture: 'amd64' | 'arm64') => ({
  architecture,
  path: `/x/etcd-operator-${architecture}.tar`,
  reference: 'localhost/etcd-operator:1.2.3',
  digest: 'sha256:0',
  size: 1,
});

test('one image is pushed under the tag that the chart uses', () => {
  expect(explain([image('amd64')])).toContain(
    '  to a registry:  skopeo copy --preserve-digests oci-archive:/x/etcd-operator-amd64.tar docker://REGISTRY/etcd-operator:1.2.3\n' +
      '                  crane push /x/etcd-operator-amd64.tar REGISTRY/etcd-operator:1.2.3\n' +
      '  to one node:    ctr -n k8s.io images import /x/etcd-operator-amd64.tar\n',
  );
});

test('two images have a tag each, and are combined under the tag that the chart uses', () => {
  expect(explain([image('amd64'), image('arm64')])).toContain(
    '  to a registry:  crane push /x/etcd-operator-amd64.tar REGISTRY/etcd-operator:1.2.3-amd64\n' +
      '                  crane push /x/etcd-operator-arm64.tar REGISTRY/etcd-operator:1.2.3-arm64\n' +
      '                  crane index append -m REGISTRY/etcd-operator:1.2.3-amd64 -m REGISTRY/etcd-operator:1.2.3-arm64 -t REGISTRY/etcd-operator:1.2.3\n',
  );
});
