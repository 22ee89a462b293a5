package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// policyFile is the policy with the same bounds, for hubs whose definitions are those of OCM.
const policyFile = "policies/bounds.yaml"

// guarded are the definitions that the policy is about: objects that bootstrap credentials, agents, tenants or authors
// write, and that every typed list decodes. The value reports whether times are checked, too; in the status of a work
// there may be so many that CEL costs too much.
func guarded() map[string]bool {
	return map[string]bool{
		"hub/addondeploymentconfigs.yaml": true, "hub/clustermanagementaddons.yaml": true,
		"hub/managedclusteraddons.yaml": true, "hub/managedclusters.yaml": true, "hub/manifestworks.yaml": false,
		"hub/placements.yaml": true,
	}
}

// counted are the definitions whose lists of objects have a bound, too: tenants write them, the hub manager keeps them,
// and three bytes of an empty object take fifty times as much there.
func counted() []string { return []string{"hub/addondeploymentconfigs.yaml", "hub/placements.yaml"} }

// maxEntries is how many objects such a list may have.
const maxEntries = 256

// listOf returns the bound of a list of objects that a tenant writes.
func listOf(schema apiextensionsv1.JSONSchemaProps, path []string) (check, bool) {
	objects := schema.Type == "array" && schema.Items.Schema.Type == "object" && schema.MaxItems == nil
	return check{
		good:      fmt.Sprintf("%%[1]s.size() <= %d", maxEntries),
		must:      fmt.Sprintf("a list of at most %d entries", maxEntries),
		otherwise: "the hub manager keeps all of them in memory",
	}, objects && path[0] == "spec"
}

// maxText is how many characters a text has at most that goes into each container of an add-on.
const maxText = 1 << 16

// textOf returns the bound of a text that goes into each container.
func textOf(schema apiextensionsv1.JSONSchemaProps, path []string) (check, bool) {
	plain := schema.Type == "string" && schema.Format == "" && schema.MaxLength == nil
	return check{
		good:      fmt.Sprintf("%%[1]s.size() <= %d", maxText),
		must:      fmt.Sprintf("a text of at most %d characters", maxText),
		otherwise: "each container of an add-on has it",
	}, plain && len(path) > 2 && path[1] == "proxyConfig"
}

// policies returns the policies for the definitions in a folder.
func policies(crds string) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("# Written by go run ./manifests/gen from the definitions. " +
		"Numbers, durations, quantities and times that a schema\n" +
		"# of OCM allows and Go does not: a program in Go cannot read such an object. " +
		"Our own definitions refuse them, too;\n" +
		"# these policies are for hubs whose definitions are those of OCM. What was beyond a bound before may stay so.\n" +
		"# The lists of objects that tenants write have at most 256 entries.\n")
	for i, name := range slices.Sorted(maps.Keys(guarded())) {
		raw, err := os.ReadFile(filepath.Join(crds, name))
		if err != nil {
			return nil, fmt.Errorf("reading a definition: %w", err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(raw, &crd); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", name, err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		bounds := []bound{func(s apiextensionsv1.JSONSchemaProps, _ []string) (check, bool) {
			return checkOf(s, guarded()[name])
		}}
		if slices.Contains(counted(), name) {
			bounds = append(bounds, listOf, textOf)
		}
		writePolicy(&out, &crd, checksOf(&crd, bounds))
	}
	return out.Bytes(), nil
}

// bound returns the bound of a value with a schema at a path, and whether it has one.
type bound func(schema apiextensionsv1.JSONSchemaProps, path []string) (check, bool)

// checksOf returns the bounds of a definition, each once. A write judges only what it can change.
func checksOf(crd *apiextensionsv1.CustomResourceDefinition, bounds []bound) []check {
	byField := map[string]check{}
	apart := true
	for _, version := range crd.Spec.Versions {
		collect(*version.Schema.OpenAPIV3Schema, nil, bounds, byField)
		apart = apart && version.Subresources != nil && version.Subresources.Status != nil
	}
	checks := make([]check, 0, len(byField))
	for _, field := range slices.Sorted(maps.Keys(byField)) {
		c := byField[field]
		c.apart = apart
		checks = append(checks, c)
	}
	return checks
}

// collect collects the bounds below a path.
func collect(schema apiextensionsv1.JSONSchemaProps, path []string, bounds []bound, into map[string]check) {
	for _, of := range bounds {
		if c, has := of(schema, path); has {
			c.path = path
			into[c.field()] = c
		}
	}
	below := func(name string) []string { return append(slices.Clone(path), name) }
	for name, one := range schema.Properties {
		collect(one, below(name), bounds, into)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		collect(*schema.Items.Schema, below("[]"), bounds, into)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		collect(*schema.AdditionalProperties.Schema, below("{}"), bounds, into)
	}
}

// checkOf returns the bound of a value with a schema, and whether there is one that OCM's schema lacks.
func checkOf(schema apiextensionsv1.JSONSchemaProps, withTimes bool) (check, bool) {
	const numbers = minimum + " to " + maximum
	switch {
	case schema.Format == "int32":
		return check{good: "(%[1]s >= " + minimum + " && %[1]s <= " + maximum + ")", must: "a number from " + numbers}, true
	case schema.Pattern == durations:
		return check{good: "%[1]s.matches(r'" + durations + "')", must: "a duration with units, such as 90m or 1h30m"}, true
	case schema.Pattern == times && withTimes:
		return check{
			good: "(%[1]s == null || string(%[1]s).matches(r'" + times + "'))",
			must: "a time such as 2026-01-02T03:04:05Z",
		}, true
	case schema.XIntOrString && strings.Contains(schema.Pattern, exponent):
		return check{
			good: "(type(%[1]s) != string || %[1]s.matches(r'" + schema.Pattern + "'))",
			must: "a quantity with an exponent of at most two digits",
		}, true
	case schema.XIntOrString:
		return check{
			good: "(type(%[1]s) != int || (%[1]s >= " + minimum + " && %[1]s <= " + maximum + "))",
			must: "a percentage, or a number from " + numbers,
		}, true
	}
	return check{}, false
}

// writePolicy writes the policy of a definition and its binding.
func writePolicy(out *bytes.Buffer, crd *apiextensionsv1.CustomResourceDefinition, checks []check) {
	plural := crd.Spec.Names.Plural
	fmt.Fprintf(out, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: %[1]s-bounds.spokelet.io
  annotations:
    policies.spokelet.io/what: >-
      %[2]ss have no value that programs in Go cannot read
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - apiGroups: [%[3]s]
        apiVersions: ["*"]
        operations: [CREATE, UPDATE]
        resources: [%[1]s, %[1]s/status]
  validations:
`, plural, crd.Spec.Names.Kind, crd.Spec.Group)
	for _, c := range checks {
		fmt.Fprintf(out, "    - expression: >-\n")
		for _, line := range strings.Split(c.expression(), "\n") {
			fmt.Fprintf(out, "        %s\n", line)
		}
		otherwise := cmp.Or(c.otherwise, fmt.Sprintf("programs in Go cannot read the %s otherwise", crd.Spec.Names.Kind))
		fmt.Fprintf(out, "      message: >-\n        %s must be %s; %s\n", c.field(), c.must, otherwise)
	}
	fmt.Fprintf(out, `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: %[1]s-bounds.spokelet.io
spec:
  policyName: %[1]s-bounds.spokelet.io
  validationActions: [Deny]
`, plural)
}

// writePolicies writes the policies for the definitions in one folder into the folder of the hub.
func writePolicies(crds, hub string) error {
	raw, err := policies(crds)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(hub, policyFile), raw, 0o644); err != nil {
		return fmt.Errorf("writing the policies: %w", err)
	}
	return nil
}
