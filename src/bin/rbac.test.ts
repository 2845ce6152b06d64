import { expect, test } from 'vitest';
import { leaderElectionRbac, rbac } from './rbac.ts';

test('the operator has exactly these permissions', () => {
  const lines = rbac.map((r) => `${r.apiGroups?.join()}/${r.resources?.join()}: ${r.verbs.join(' ')}`);
  expect(lines).toMatchInlineSnapshot(`
    [
      "/nodes: get list watch",
      "/persistentvolumeclaims: create delete get list patch watch",
      "/persistentvolumes: get",
      "/pods: create delete get list patch watch",
      "/secrets: create delete get patch",
      "/services: create get list patch watch",
      "batch/jobs: create get list watch",
      "cert-manager.io/certificaterequests: get",
      "cert-manager.io/certificates: create get list patch watch",
      "etcd-operator.cozystack.io/etcdclusters: get list watch",
      "etcd-operator.cozystack.io/etcdclusters/finalizers: update",
      "etcd-operator.cozystack.io/etcdclusters/status: patch",
      "etcd-operator.cozystack.io/etcddefragpolicies: list watch",
      "etcd-operator.cozystack.io/etcddefragpolicies/finalizers: update",
      "etcd-operator.cozystack.io/etcddefragpolicies/status: patch",
      "etcd-operator.cozystack.io/etcddefrags: create delete get list watch",
      "etcd-operator.cozystack.io/etcddefrags/status: patch",
      "etcd-operator.cozystack.io/etcdmembers: create delete get list manage patch watch",
      "etcd-operator.cozystack.io/etcdmembers/finalizers: update",
      "etcd-operator.cozystack.io/etcdmembers/status: patch",
      "etcd-operator.cozystack.io/etcdsnapshots: create delete get list watch",
      "etcd-operator.cozystack.io/etcdsnapshots/finalizers: update",
      "etcd-operator.cozystack.io/etcdsnapshots/status: patch",
      "etcd-operator.cozystack.io/etcdsnapshotschedules: list watch",
      "etcd-operator.cozystack.io/etcdsnapshotschedules/finalizers: update",
      "etcd-operator.cozystack.io/etcdsnapshotschedules/status: patch",
      "events.k8s.io/events: create patch",
      "networking.k8s.io/networkpolicies: create delete get list patch watch",
      "policy/poddisruptionbudgets: create delete get list patch watch",
    ]
  `);
  expect(leaderElectionRbac).toMatchInlineSnapshot(`
    [
      {
        "apiGroups": [
          "coordination.k8s.io",
        ],
        "resources": [
          "leases",
        ],
        "verbs": [
          "create",
          "get",
          "patch",
        ],
      },
    ]
  `);
});

test('no rule has a wildcard, and Secrets cannot be listed', () => {
  expect(JSON.stringify([rbac, leaderElectionRbac])).not.toMatch(/\*|exec|impersonate|escalate|"bind"/);
  const ofSecrets = rbac.filter(({ resources }) => resources?.includes('secrets')).flatMap(({ verbs }) => verbs);
  for (const verb of ['list', 'watch', 'deletecollection', 'update']) expect(ofSecrets).not.toContain(verb);
});
