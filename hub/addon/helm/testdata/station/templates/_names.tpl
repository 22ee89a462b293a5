{{- define "station.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "station.agent" -}}
{{ include "station.name" . }}-agent
{{- end -}}

{{- define "station.resources" -}}
{{- $id := printf "%s:%s" .object .container }}
{{- range reverse .values.global.resourceRequirements }}
{{- if regexMatch .containerIDRegex $id }}
resources:
  {{- toYaml .resources | nindent 2 }}
{{- break }}
{{- end }}
{{- end }}
{{- end -}}
