package template_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/template"
)

// define returns an edit that defines variables, in pairs of name and value.
func define(pairs ...string) func(*addonv1beta1.AddOnDeploymentConfigSpec) {
	return func(s *addonv1beta1.AddOnDeploymentConfigSpec) {
		for i := 0; i+1 < len(pairs); i += 2 {
			s.CustomizedVariables = append(s.CustomizedVariables, addonv1beta1.CustomizedVariable{Name: pairs[i], Value: pairs[i+1]})
		}
	}
}

// Shows: hub/typed-values
func TestAValueBecomesWhatTheFieldTakes(t *testing.T) {
	config := define("N", "3", "T", "true", "F", "false", "P", "25%", "NAME", "http", "RATE", "0.5", "BIG", "5000000000")
	tests := map[string]struct{ manifest, want string }{
		"numbers and booleans anywhere in a Deployment": {
			`
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, labels: {n: "{{N}}"}}
spec:
  replicas: "{{N}}"
  paused: "{{T}}"
  strategy: {rollingUpdate: {maxSurge: "{{N}}", maxUnavailable: "{{P}}"}}
  template:
    spec:
      hostNetwork: "{{F}}"
      terminationGracePeriodSeconds: "{{BIG}}"
      nodeSelector: {n: "{{N}}"}
      containers:
      - name: c
        args: ["{{N}}"]
        env: [{name: CLUSTER_NAME, value: "{{N}}"}]
        ports: [{containerPort: "{{N}}"}]
        securityContext: {runAsUser: "{{N}}", privileged: "{{F}}"}
        readinessProbe: {httpGet: {port: "{{NAME}}"}, periodSeconds: "{{N}}"}
        livenessProbe: {httpGet: {port: "{{N}}"}}
        resources: {limits: {cpu: "{{N}}"}}`,
			`
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, labels: {n: "3"}}
spec:
  replicas: 3
  paused: true
  strategy: {rollingUpdate: {maxSurge: 3, maxUnavailable: 25%}}
  template:
    spec:
      hostNetwork: false
      terminationGracePeriodSeconds: 5000000000
      nodeSelector: {n: "3"}
      containers:
      - name: c
        args: ["3"]
        env: [{name: CLUSTER_NAME, value: "cluster1"}]
        ports: [{containerPort: 3}]
        securityContext: {runAsUser: 3, privileged: false}
        readinessProbe: {httpGet: {port: http}, periodSeconds: 3}
        livenessProbe: {httpGet: {port: 3}}
        resources: {limits: {cpu: "3"}}`,
		},
		"a number of several variables": {
			`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: "80{{N}}0", targetPort: "{{N}}{{N}}"}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 8030, targetPort: 33}]}}`,
		},
		"a string of the author that a variable need not replace": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, immutable: "true", data: {immutable: "true"}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, immutable: true, data: {immutable: "true"}}`,
		},
		"strings of an unknown kind": {
			`{apiVersion: example.com/v1, kind: Thing, metadata: {name: t, generation: "{{N}}"}, spec: {size: "{{N}}"}}`,
			`{apiVersion: example.com/v1, kind: Thing, metadata: {name: t, generation: "3"}, spec: {size: "3"}}`,
		},
		"stated types of an unknown kind": {
			`{apiVersion: example.com/v1, kind: Thing, metadata: {name: t}, spec: {
				size: "{{N|integer}}", rate: "{{RATE|number}}", whole: "{{N|number}}", on: "{{T|boolean}}", list: ["{{N|integer}}"]}}`,
			`{apiVersion: example.com/v1, kind: Thing, metadata: {name: t}, spec: {
				size: 3, rate: 0.5, whole: 3, on: true, list: [3]}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			result, err := template.Render(inputOf(t, config, test.manifest))
			require.NoError(t, err)
			assert.Equal(t, object(t, test.want), result.Objects[0].Object)
		})
	}
}

// Shows: hub/typed-values
func TestAValueThatTheFieldDoesNotTakeIsReported(t *testing.T) {
	const head = "AddOnTemplate t cannot be rendered: manifest 0 "
	config := define("MANY", "many", "YES", "yes", "BIG", "5000000000", "EMPTY", "", "LONG", strings.Repeat("x", 1000), "N", "3",
		"NAN", "NaN", "NULL", "null")
	thing := func(value string) string {
		return `{apiVersion: example.com/v1, kind: Thing, metadata: {name: t}, spec: {a: "` + value + `"}}`
	}
	tests := map[string]struct{ manifest, want string }{
		"words for a number": {
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {replicas: "{{MANY}}"}}`,
			`(ReplicaSet r), .spec.replicas: "many", the value of variable MANY, is no whole number`,
		},
		"a number that is too large": {
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {replicas: "{{BIG}}"}}`,
			`(ReplicaSet r), .spec.replicas: "5000000000", the value of variable BIG, is no whole number of 32 bits`,
		},
		"nothing for a number": {
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r}, spec: {minReadySeconds: "{{EMPTY}}"}}`,
			`(ReplicaSet r), .spec.minReadySeconds: "", the value of variable EMPTY, is no whole number`,
		},
		"a word for a boolean": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, immutable: "{{YES}}"}`,
			`(ConfigMap c), .immutable: "yes", the value of variable YES, is neither true nor false`,
		},
		"a long value is shortened": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, immutable: "{{LONG}}"}`,
			`(ConfigMap c), .immutable: "` + strings.Repeat("x", 61) + `...", the value of variable LONG, is neither true nor false`,
		},
		"what JSON has no number for": {
			thing("{{NAN|number}}"), `(Thing t), .spec.a: "NaN", the value of variable NAN, is no number`,
		},
		"null for a number": {
			thing("{{NULL|number}}"), `(Thing t), .spec.a: "null", the value of variable NULL, is no number`,
		},
		"a type beside other text": {
			thing("a{{N|integer}}"),
			`(Thing t), .spec.a: {{N|integer}} must be the whole value: a type is for a value alone; write {{N}}`,
		},
		"a type with blanks": {
			thing("{{ N | integer }}"),
			`(Thing t), .spec.a: variable " N | integer " has no value: write {{N|integer}}, without blanks`,
		},
		"an unknown type": {
			thing("{{N|int}}"),
			`(Thing t), .spec.a: {{N|int}}: the type "int" is unknown; it must be integer, number or boolean`,
		},
		"a type of a key": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {"{{N|integer}}": a}}`,
			`(ConfigMap c), .data["{{N|integer}}"]: {{N|integer}} must be the whole value: a type is for a value alone; write {{N}}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := template.Render(inputOf(t, config, test.manifest))
			require.Error(t, err)
			assert.True(t, addon.IsInvalid(err))
			got := err.Error()
			if at := strings.Index(got, ". Define the missing"); at >= 0 {
				got = got[:at]
			}
			assert.Equal(t, head+test.want, got)
		})
	}
}
