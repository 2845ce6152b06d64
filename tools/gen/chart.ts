/** The generated parts of the Helm chart: the CRDs, the operator's RBAC permissions and the admission warnings. */
import { stringify } from 'yaml';
import type { CustomResourceDefinition } from '../../src/api/crd.ts';
import { crds } from '../../src/api/crds.ts';
import { leaderElectionRbac, rbac } from '../../src/bin/rbac.ts';
import type { PolicyRule } from '../../src/gen/kube.ts';
import { warningsTemplate } from './warnings.ts';

const CHART = 'charts/etcd-operator';
const yaml = (value: unknown): string => stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });

/** Helm reads two braces as a template, also in a description or a CEL rule. */
const escaped = (text: string): string => text.replaceAll('{{', '{{ "{{" }}');

/** A template and not a file in Helm's crds folder: Helm installs the CRDs in that folder, and never upgrades them. */
function crdTemplate({ apiVersion, kind, metadata, spec }: CustomResourceDefinition): string {
  return `{{- /* Made by "./dev gen" from src/api. */ -}}
{{- if (.Values.crds).enabled }}
apiVersion: ${apiVersion}
kind: ${kind}
metadata:
  name: ${metadata.name}
  labels:
    {{- include "etcd-operator.labels" . | nindent 4 }}
  {{- if .Values.crds.keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
${escaped(yaml({ spec }))}{{- end }}
`;
}

const rules = (list: readonly PolicyRule[]): string => `# Made by "./dev gen" from src/bin/rbac.ts.\n${yaml(list)}`;

/** Path in the repository → content. */
export function generateChart(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>([
    [`${CHART}/files/rbac/manager.yaml`, rules(rbac)],
    [`${CHART}/files/rbac/leader-election.yaml`, rules(leaderElectionRbac)],
    [`${CHART}/templates/warnings.yaml`, warningsTemplate()],
  ]);
  for (const crd of crds) {
    const [plural] = crd.metadata.name.split('.');
    files.set(`${CHART}/templates/crds/${plural}.yaml`, crdTemplate(crd));
  }
  return Promise.resolve(files);
}
