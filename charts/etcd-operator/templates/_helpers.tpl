{{- /* A name, cut to the 63 characters of a label value. */ -}}
{{- define "etcd-operator.cut" -}}
{{- trimSuffix "-" (trunc 63 .) -}}
{{- end -}}

{{- define "etcd-operator.name" -}}
{{- include "etcd-operator.cut" (.Values.nameOverride | default .Chart.Name) -}}
{{- end -}}

{{- /* The prefix of all object names: the release's name, and the chart's name unless the release's name contains it. */ -}}
{{- define "etcd-operator.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- include "etcd-operator.cut" (.Values.fullnameOverride | default $full) -}}
{{- end -}}

{{- /*
A Deployment's selector is immutable. These two labels, and no more, are the selector of the Go operator's Deployment:
with another label the API server would refuse "helm upgrade".
*/ -}}
{{- define "etcd-operator.selector" -}}
app.kubernetes.io/name: {{ include "etcd-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "etcd-operator.labels" -}}
{{ include "etcd-operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ include "etcd-operator.cut" (printf "%s-%s" .Chart.Name (replace "+" "_" .Chart.Version)) }}
{{- end -}}

{{- /*
As in the Go operator's chart, a name is used only with create: false. With another name, an upgrade would delete the account that
its Pod still runs with.
*/ -}}
{{- define "etcd-operator.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- include "etcd-operator.fullname" . -}}
{{- else -}}
{{- required "serviceAccount.name is required when serviceAccount.create is false: the operator must not run as the namespace's default account" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "etcd-operator.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- /* Both containers satisfy the "restricted" Pod Security level and have a read-only root file system. */ -}}
{{- define "etcd-operator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
    - ALL
{{- end -}}

{{- /* manager.watchNamespaces as a JSON list: a list, or a string with commas, as the Go operator's chart takes both. */ -}}
{{- define "etcd-operator.namespaces" -}}
{{- $given := .Values.manager.watchNamespaces | default list -}}
{{- $namespaces := list -}}
{{- range (kindIs "string" $given | ternary (splitList "," (toString $given)) $given) -}}
{{- with trim (toString .) }}{{ $namespaces = append $namespaces . }}{{ end -}}
{{- end -}}
{{- toJson $namespaces -}}
{{- end -}}

{{- /*
"helm upgrade --reuse-values" keeps the defaults of the chart that created the release, and 128Mi is the Go operator's limit.
Node.js needs more, and is OOM-killed with less as soon as there are some clusters. For NOTES.txt; empty when it is enough.
*/ -}}
{{- define "etcd-operator.memoryWarning" -}}
{{- $limit := dig "limits" "memory" "" (.Values.manager.resources | default dict) | toString -}}
{{- $number := regexFind "^[0-9]*[.]?[0-9]*([eE][-+]?[0-9]+)?" $limit -}}
{{- $unit := trimPrefix $number $limit -}}
{{- $bytes := dict "m" 0.001 "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- if and $number (hasKey $bytes $unit) (lt (mulf (float64 $number) (get $bytes $unit)) 201326592.0) -}}
{{- printf "WARNING: manager.resources.limits.memory is %s and the operator needs at least 192Mi: with less it may be OOM-killed. If this comes from an earlier release, use --reset-then-reuse-values instead of --reuse-values" $limit -}}
{{- end -}}
{{- end -}}

{{- define "etcd-operator.tokenMount" -}}
- name: token
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end -}}

{{- /* Not empty: render the admission policies. A release that only observes must not refuse what another operator does. */ -}}
{{- define "etcd-operator.hasPolicies" -}}
{{- if and (not .Values.manager.observeOnly) (dig "enabled" true (.Values.admissionPolicies | default dict)) }}yes{{ end -}}
{{- end -}}
