/** The admission policy of the chart that warns about what is accepted and is risky, or has no effect. */
import { stringify } from 'yaml';
import { IGNORED_FIELDS, ignoredMessage } from '../../src/domain/ignored-fields.ts';
import { KNOWN_ISSUES } from '../../src/domain/known-issues.ts';
import { versionNumber } from '../../src/lib/version.ts';

interface Validation {
  /** False: the API server warns. */
  readonly expression: string;
  readonly message?: string;
  readonly messageExpression?: string;
}

const variables = [
  { name: 'spec', expression: 'object.spec' },
  {
    name: 'version',
    expression:
      "(int(object.spec.version.split('.')[0]) * 1000 + int(object.spec.version.split('.')[1])) * 1000 + int(object.spec.version.split('.')[2])",
  },
];

const validations: readonly Validation[] = [
  ...IGNORED_FIELDS.map((ignored) => ({
    expression: `!(${ignored.cel.replaceAll(/\b(spec\.|version [<>])/g, 'variables.$1')})`,
    message: ignoredMessage(ignored),
  })),
  {
    expression: '!has(variables.spec.replicas) || variables.spec.replicas == 0 || variables.spec.replicas % 2 == 1',
    messageExpression:
      "'replicas is %d: an even number of members tolerates no more failures than %d, and needs one more of them for every write'.format([variables.spec.replicas, variables.spec.replicas - 1])",
  },
  {
    expression: '(has(variables.spec.tls) && has(variables.spec.tls.client)) || has(variables.spec.networkPolicy)',
    message:
      'etcd serves plain HTTP to everything in the Pod network: set tls.client, or networkPolicy with the clients that may connect',
  },
  ...KNOWN_ISSUES.map(({ first, last, bug, fixed }) => ({
    expression: `variables.version < ${versionNumber(first)} || variables.version > ${versionNumber(last)}`,
    message: `this version of etcd has a known issue: ${bug} (fixed in ${fixed})`,
  })),
];

const yaml = (value: unknown): string => stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });
const indented = (value: unknown): string => yaml(value).replace(/^(?=.)/gm, '  ');
/** Helm reads two braces as a template. */
const escaped = (value: string): string => value.replaceAll('{{', '{{ "{{" }}');

export const warningsTemplate = (): string => `{{- /* Made by "./dev gen" from src/domain. */ -}}
{{- if include "etcd-operator.hasPolicies" . }}
{{- $name := printf "%s-warnings" (include "etcd-operator.fullname" .) }}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels:
    {{- include "etcd-operator.labels" . | nindent 4 }}
spec:
  # A warning must never refuse an object, not even when an expression cannot be evaluated.
  failurePolicy: Ignore
  matchConstraints:
    resourceRules:
      - apiGroups:
          - etcd-operator.cozystack.io
        apiVersions:
          - v1alpha2
        operations:
          - CREATE
          - UPDATE
        resources:
          - etcdclusters
${escaped(indented({ variables, validations }))}---
{{ include "etcd-operator.policyBinding" (dict "root" . "name" $name "action" "Warn") }}
{{- end }}
`;
