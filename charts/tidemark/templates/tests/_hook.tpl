{{- define "tidemark.testLabels" -}}
app.kubernetes.io/name: tidemark-test
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The argument is the weight: what the pod needs comes before it. */}}
{{- define "tidemark.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
