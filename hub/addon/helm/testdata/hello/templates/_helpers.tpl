{{- define "hello.labels" -}}
app: {{ .Release.Name }}
cluster: {{ .Values.clusterName }}
{{- end -}}
