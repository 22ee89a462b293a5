{{- define "shared.labels" -}}
app: {{ include "station.name" . }}
chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
release: {{ .Release.Name }}
{{- end -}}
