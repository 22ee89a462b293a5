{{/* The namespace of what belongs to the managed cluster; each has the second one. */}}
{{- define "weather.managedNamespace" -}}
{{ if eq .Values.installMode "Hosted" }}open-cluster-management-agent-addon{{ else }}{{ .Release.Namespace }}{{ end }}
{{- end -}}

{{/* Annotations of what runs where the agent runs. */}}
{{- define "weather.hosting" -}}
{{- if eq .Values.installMode "Hosted" }}
addon.open-cluster-management.io/hosted-manifest-location: hosting
{{- end }}
{{- end -}}

{{/* What the pods of the agent and of the hook have in common. */}}
{{- define "weather.pod" -}}
{{- with .Values.global.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- if eq .Values.installMode "Hosted" }}
automountServiceAccountToken: false
{{- else }}
serviceAccountName: {{ .Release.Name }}-agent
{{- end }}
securityContext:
  runAsNonRoot: true
  seccompProfile: {type: RuntimeDefault}
volumes:
  - {name: hub, secret: {secretName: {{ .Values.hubKubeConfigSecret }}}}
  - {name: station, secret: {secretName: {{ .Release.Name }}-weather.example.com-stations-client-cert}}
  {{- if eq .Values.installMode "Hosted" }}
  - {name: managed, secret: {secretName: {{ .Values.managedKubeConfigSecret }}}}
  {{- end }}
{{- end -}}

{{/* What their containers have in common. */}}
{{- define "weather.container" -}}
image: {{ .Values.image }}
imagePullPolicy: IfNotPresent
{{- with .Values.global.proxyConfig }}
env:
  - {name: HTTP_PROXY, value: {{ .HTTP_PROXY | quote }}}
  - {name: HTTPS_PROXY, value: {{ .HTTPS_PROXY | quote }}}
  - {name: NO_PROXY, value: {{ .NO_PROXY | quote }}}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: hub, mountPath: /hub, readOnly: true}
  - {name: station, mountPath: /station, readOnly: true}
  {{- if eq .Values.installMode "Hosted" }}
  - {name: managed, mountPath: /managed, readOnly: true}
  {{- end }}
{{- end -}}
