/** An administrator's admission policy that rewrites what the operator writes, as mutating webhooks do. */
import { expect, onTestFinished } from 'vitest';
import { becomes, type Tenant } from './journey.ts';

const API = 'admissionregistration.k8s.io/v1';
const THEIRS = '[JSONPatch{op: "add", path: "/metadata/labels/team", value: "theirs"}]';
const ONE_AVAILABLE = '[JSONPatch{op: "add", path: "/spec/minAvailable", value: 1}]';
const ELLIPTIC =
  '[JSONPatch{op: "add", path: "/spec/privateKey/algorithm", value: "ECDSA"}, JSONPatch{op: "add", path: "/spec/privateKey/size", value: 256}]';

const of = (kind: string, patches: string) => ({
  patchType: 'JSONPatch',
  jsonPatch: { expression: `request.kind.kind == "${kind}" ? ${patches} : []` },
});
const rule = (apiGroup: string, resource: string) => ({
  apiGroups: [apiGroup],
  apiVersions: ['*'],
  operations: ['CREATE', 'UPDATE'],
  resources: [resource],
});

/** Another label on Services, a lower PodDisruptionBudget and another key of Certificates: until the test ends. */
export async function rewrites(tenant: Tenant): Promise<void> {
  const { cluster, namespace } = tenant;
  const metadata = { name: `rewrites-${namespace}` };
  const matchConstraints = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
    resourceRules: [
      rule('', 'services'),
      rule('policy', 'poddisruptionbudgets'),
      rule('cert-manager.io', 'certificates'),
    ],
  };
  const mutations = [of('Service', THEIRS), of('PodDisruptionBudget', ONE_AVAILABLE), of('Certificate', ELLIPTIC)];
  const policy = { failurePolicy: 'Fail', reinvocationPolicy: 'Never', matchConstraints, mutations };
  await cluster.apply([
    { apiVersion: API, kind: 'MutatingAdmissionPolicy', metadata, spec: policy },
    { apiVersion: API, kind: 'MutatingAdmissionPolicyBinding', metadata, spec: { policyName: metadata.name } },
  ]);
  onTestFinished(async () => {
    const both = 'mutatingadmissionpolicybindings,mutatingadmissionpolicies';
    await cluster.kubectl(['delete', both, metadata.name]);
  });
  await becomes('the policy to act', async () => {
    const dryRun = ['create', 'service', 'clusterip', 'probe', '--tcp=80', '--dry-run=server', '-o', 'yaml'];
    expect(await tenant.kubectl(...dryRun)).toContain('team: theirs');
  });
}
