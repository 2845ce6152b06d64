{{- /* One name of the release, cut to what a label may hold. */ -}}
{{- define "etcd-operator.cut" -}}
{{- trimSuffix "-" (trunc 63 .) -}}
{{- end -}}

{{- define "etcd-operator.name" -}}
{{- include "etcd-operator.cut" (.Values.nameOverride | default .Chart.Name) -}}
{{- end -}}

{{- /* What the names of all objects begin with: the release's name, the chart's name added unless it is in there. */ -}}
{{- define "etcd-operator.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- include "etcd-operator.cut" (.Values.fullnameOverride | default $full) -}}
{{- end -}}

{{- /*
A Deployment's selector can never change. These two, and no more, are the selector of the Go operator's Deployment:
with another label in it "helm upgrade" would be refused.
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

{{- define "etcd-operator.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "etcd-operator.fullname" .) -}}
{{- else -}}
{{- required "serviceAccount.name is needed when serviceAccount.create is false: the operator must not run as the namespace's default account" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "etcd-operator.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- /* What both containers may do: nothing that the "restricted" Pod Security level forbids, and no writing. */ -}}
{{- define "etcd-operator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop:
    - ALL
{{- end -}}

{{- /*
"helm upgrade --reuse-values" brings the defaults of the chart that made the release, and 128Mi is the Go operator's limit.
Node does not live in that: refused here, before the running operator is replaced by one that is killed again and again.
*/ -}}
{{- define "etcd-operator.checkMemory" -}}
{{- $limit := dig "limits" "memory" "" (.Values.manager.resources | default dict) | toString -}}
{{- $number := regexFind "^[0-9]*[.]?[0-9]*([eE][-+]?[0-9]+)?" $limit -}}
{{- $unit := trimPrefix $number $limit -}}
{{- $bytes := dict "m" 0.001 "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- if and $number (hasKey $bytes $unit) (lt (mulf (float64 $number) (get $bytes $unit)) 201326592.0) -}}
{{- fail (printf "manager.resources.limits.memory is %s and the operator needs at least 192Mi. If this comes from an earlier release, use --reset-then-reuse-values instead of --reuse-values" $limit) -}}
{{- end -}}
{{- end -}}
