{{/*
The objects of this chart are those of the kustomize bases, rendered into files/ by "make generate". The templates only
change them as the values say.
*/}}

{{/* The namespace that the objects of each base name, in the place of which they get the namespace of the release. */}}
{{- define "spokelet.base-namespace" -}}
{{- get (dict "hub" "open-cluster-management-hub" "klusterlet" "open-cluster-management-agent" "klusterlet-hosted" "klusterlet-hosted" "klusterlet-managed" "open-cluster-management-agent") .Values.mode -}}
{{- end -}}

{{/* The objects of the base of the mode, as a JSON object with the list "items". */}}
{{- define "spokelet.objects" -}}
{{- $base := include "spokelet.base-namespace" . -}}
{{- $text := .Files.Get (printf "files/%s.yaml" .Values.mode) -}}
{{- if eq .Values.mode "hub" -}}
{{- /* The policies contain the namespace in their expressions, too. */ -}}
{{- $text = replace $base .Release.Namespace $text -}}
{{- end -}}
{{- $items := list -}}
{{- range $document := splitList "\n---\n" $text -}}
{{- $object := fromYaml $document -}}
{{- if eq (dig "metadata" "namespace" "" $object) $base -}}
{{- $_ := set $object.metadata "namespace" $.Release.Namespace -}}
{{- end -}}
{{- range $subject := $object.subjects -}}
{{- if eq (dig "namespace" "" $subject) $base -}}
{{- $_ := set $subject "namespace" $.Release.Namespace -}}
{{- end -}}
{{- end -}}
{{- if include "spokelet.own-account" $ -}}
{{- include "spokelet.to-own-account" $object -}}
{{- end -}}
{{- if ne (include "spokelet.left-out" (dict "root" $ "object" $object "base" $base)) "true" -}}
{{- $items = append $items $object -}}
{{- end -}}
{{- end -}}
{{- dict "items" $items | toJson -}}
{{- end -}}

{{/* "true" where the agent has another ServiceAccount on the managed cluster than the one under which works are applied. */}}
{{- define "spokelet.own-account" -}}
{{- if and (has .Values.mode (list "klusterlet" "klusterlet-managed")) (not .Values.workRights.default) -}}
true
{{- end -}}
{{- end -}}

{{/* Gives the agent's own rights to its own ServiceAccount: as manifests/overlays/klusterlet-without-rights does. */}}
{{- define "spokelet.to-own-account" -}}
{{- $account := "klusterlet-registration-sa" -}}
{{- $name := .metadata.name -}}
{{- if and .subjects (or (contains ":klusterlet-registration:" $name) (eq $name "open-cluster-management:klusterlet-work:agent")) -}}
{{- range $subject := .subjects -}}
{{- $_ := set $subject "name" $account -}}
{{- end -}}
{{- else if and (eq .kind "ClusterRole") (eq $name "open-cluster-management:klusterlet-work:agent") -}}
{{- $rules := list -}}
{{- range $rule := .rules -}}
{{- if not (has "impersonate" $rule.verbs) -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- end -}}
{{- $_ := set . "rules" $rules -}}
{{- else if eq .kind "Deployment" -}}
{{- $_ := set .spec.template.spec "serviceAccountName" $account -}}
{{- end -}}
{{- end -}}

{{/* "true" for objects of the base that this release does not have. */}}
{{- define "spokelet.left-out" -}}
{{- $kind := .object.kind -}}
{{- $name := .object.metadata.name -}}
{{- if and (eq $kind "Namespace") (or (eq $name .base) (eq $name .root.Release.Namespace)) -}}
true
{{- else if and (eq $kind "NetworkPolicy") (not .root.Values.networkPolicy.enabled) -}}
true
{{- else if and (hasPrefix "open-cluster-management:klusterlet-work:execution" $name) (not .root.Values.workRights.default) -}}
true
{{- end -}}
{{- end -}}

{{/* The image: the parts that values name, and otherwise those of the base. */}}
{{- define "spokelet.image" -}}
{{- $image := .root.Values.image -}}
{{- $name := regexReplaceAll ":[^:/]*$" .base "" -}}
{{- $tag := trimPrefix (printf "%s:" $name) .base -}}
{{- $name = $image.repository | default $name -}}
{{- with $image.registry -}}{{- $name = printf "%s/%s" (trimSuffix "/" .) $name -}}{{- end -}}
{{- if $image.digest -}}
{{ $name }}@{{ $image.digest }}
{{- else -}}
{{ $name }}:{{ $image.tag | default $tag }}
{{- end -}}
{{- end -}}

{{/* "true" where the pods serve metrics. */}}
{{- define "spokelet.serves-metrics" -}}
{{- if or .Values.metrics.enabled .Values.monitoring.podMonitor.enabled -}}
true
{{- end -}}
{{- end -}}

{{/* The arguments that follow those of the base, as JSON. The last one of a flag counts. */}}
{{- define "spokelet.args" -}}
{{- $v := .Values -}}
{{- $args := list -}}
{{- if and (ne .Values.mode "hub") (ne $v.bootstrapSecret "bootstrap-hub-kubeconfig") -}}
{{- $args = append $args (printf "--bootstrap-kubeconfig-secret=%s" $v.bootstrapSecret) -}}
{{- end -}}
{{- if include "spokelet.own-account" . -}}
{{- $args = append $args "--work-service-account=klusterlet-work-sa" -}}
{{- else if and (eq $v.mode "klusterlet-hosted") (not $v.workRights.default) -}}
{{- $args = append $args "--work-service-account=open-cluster-management-agent/klusterlet-work-sa" -}}
{{- end -}}
{{- with $v.autoApprovedUsers -}}
{{- $args = append $args (printf "--auto-approved-csr-users=%s" (join "," .)) -}}
{{- end -}}
{{- if $v.featureGates -}}
{{- $gates := list -}}
{{- range $name := keys $v.featureGates | sortAlpha -}}
{{- $gates = append $gates (printf "%s=%t" $name (get $v.featureGates $name)) -}}
{{- end -}}
{{- $args = append $args (printf "--feature-gates=%s" (join "," $gates)) -}}
{{- end -}}
{{- if include "spokelet.serves-metrics" . -}}
{{- $args = append $args (printf "--metrics-bind-address=:%d" (int $v.metrics.port)) -}}
{{- end -}}
{{- if $v.logLevel -}}
{{- $args = append $args (printf "--v=%d" (int $v.logLevel)) -}}
{{- end -}}
{{- /* concat makes nothing of two empty lists. */ -}}
{{- dict "items" (concat $args $v.args | default list) | toJson -}}
{{- end -}}

{{/* Sets the fields of a value in an object; null removes a field. */}}
{{- define "spokelet.override" -}}
{{- range $key, $value := .from -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $.to $key -}}
{{- else -}}
{{- $_ := set $.to $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Changes the Deployment as the values say. */}}
{{- define "spokelet.deployment" -}}
{{- $v := .root.Values -}}
{{- $spec := .object.spec -}}
{{- $_ := set $spec "replicas" $v.replicas -}}
{{- $template := $spec.template -}}
{{- $_ := set $template.metadata "labels" (merge $template.metadata.labels $v.podLabels) -}}
{{- with $v.podAnnotations -}}{{- $_ := set $template.metadata "annotations" . -}}{{- end -}}
{{- $pod := $template.spec -}}
{{- $container := first $pod.containers -}}
{{- $_ := set $container "image" (include "spokelet.image" (dict "root" .root "base" $container.image)) -}}
{{- $_ := set $container "imagePullPolicy" $v.image.pullPolicy -}}
{{- $_ := set $container "args" (concat $container.args (include "spokelet.args" .root | fromJson).items) -}}
{{- if $v.clusterName -}}
{{- range $variable := $container.env -}}
{{- if eq $variable.name "CLUSTER_NAME" -}}
{{- $_ := unset $variable "valueFrom" -}}
{{- $_ := set $variable "value" $v.clusterName -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $_ := set $container "env" (concat $container.env $v.env) -}}
{{- if include "spokelet.serves-metrics" .root -}}
{{- $_ := set $container "ports" (append $container.ports (dict "name" "metrics" "containerPort" $v.metrics.port)) -}}
{{- end -}}
{{- include "spokelet.override" (dict "to" $container.resources.requests "from" $v.resources.requests) -}}
{{- include "spokelet.override" (dict "to" $container.resources.limits "from" $v.resources.limits) -}}
{{- include "spokelet.override" (dict "to" $container.securityContext "from" $v.containerSecurityContext) -}}
{{- include "spokelet.override" (dict "to" $pod.securityContext "from" $v.podSecurityContext) -}}
{{- range $volume := $pod.volumes -}}
{{- if eq (dig "secret" "secretName" "" $volume) "external-managed-kubeconfig" -}}
{{- $_ := set $volume.secret "secretName" $v.managedKubeconfigSecret -}}
{{- end -}}
{{- end -}}
{{- $spread := $v.topologySpreadConstraints -}}
{{- if and (gt (int $v.replicas) 1) (not $spread) (not $v.affinity) -}}
{{- $selector := dict "matchLabels" $spec.selector.matchLabels -}}
{{- $spread = list (dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" "ScheduleAnyway" "labelSelector" $selector) -}}
{{- end -}}
{{- with $spread -}}{{- $_ := set $pod "topologySpreadConstraints" . -}}{{- end -}}
{{- with $v.affinity -}}{{- $_ := set $pod "affinity" . -}}{{- end -}}
{{- with $v.nodeSelector -}}{{- $_ := set $pod "nodeSelector" . -}}{{- end -}}
{{- with $v.tolerations -}}{{- $_ := set $pod "tolerations" . -}}{{- end -}}
{{- with $v.priorityClassName -}}{{- $_ := set $pod "priorityClassName" . -}}{{- end -}}
{{- with $v.image.pullSecrets -}}{{- $_ := set $pod "imagePullSecrets" . -}}{{- end -}}
{{- end -}}

{{/* Changes the NetworkPolicy as the values say. The last rule for egress in the base is that for API servers. */}}
{{- define "spokelet.network-policy" -}}
{{- $v := .root.Values -}}
{{- $spec := .object.spec -}}
{{- if include "spokelet.serves-metrics" .root -}}
{{- $rule := dict "ports" (list (dict "protocol" "TCP" "port" $v.metrics.port)) -}}
{{- with $v.metrics.from -}}{{- $_ := set $rule "from" . -}}{{- end -}}
{{- $_ := set $spec "ingress" (append $spec.ingress $rule) -}}
{{- end -}}
{{- $ports := list -}}
{{- range $port := $v.networkPolicy.apiServerPorts -}}
{{- $ports = append $ports (dict "protocol" "TCP" "port" $port) -}}
{{- end -}}
{{- $_ := set $spec "egress" (concat (initial $spec.egress) (list (dict "ports" $ports)) $v.networkPolicy.egress) -}}
{{- end -}}
