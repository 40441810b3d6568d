{{- define "tidemark.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "tidemark.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "tidemark.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "tidemark.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tidemark.operator" -}}
{{ include "tidemark.fullname" . }}-operator
{{- end -}}

{{- define "tidemark.serviceAccount" -}}
{{- default (include "tidemark.operator" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "tidemark.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* What Go's collector aims at: as told, else 85 % of a memory limit in Ki, Mi or Gi. */}}
{{- define "tidemark.goMemLimit" -}}
{{- $limit := dig "limits" "memory" "" .Values.operator.resources | toString -}}
{{- if .Values.operator.goMemLimit -}}
{{- .Values.operator.goMemLimit -}}
{{- else if regexMatch "^[0-9]+(Ki|Mi|Gi)$" $limit -}}
{{- $kib := dict "Ki" 1 "Mi" 1024 "Gi" 1048576 -}}
{{- div (mul (regexFind "^[0-9]+" $limit) (get $kib (regexFind "..$" $limit)) 85) 100 -}}KiB
{{- end -}}
{{- end -}}

{{/* Where helm test works: the operator must be at work there, too. */}}
{{- define "tidemark.testNamespace" -}}
{{- .Values.test.namespace | default (first .Values.watchNamespaces) | default .Release.Namespace -}}
{{- end -}}

{{/* What every container of ours may do: nothing. */}}
{{- define "tidemark.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "tidemark.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* The selector never changes: a Deployment's cannot. */}}
{{- define "tidemark.selector" -}}
app.kubernetes.io/name: tidemark-operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tidemark.labels" -}}
{{ include "tidemark.selector" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}
