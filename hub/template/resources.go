package template

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// resourcesOf returns the resources of a container from the last rule that matches it (docs/reference/hub.md,
// "Decoration of workloads"); false when no rule does. An id consists of resource, object and container, separated by
// colons.
func resourcesOf(id string, rules []addonv1beta1.ContainerResourceRequirements) (map[string]any, bool, error) {
	for i := len(rules) - 1; i >= 0; i-- {
		if !matchesContainer(rules[i].ContainerID, id) {
			continue
		}
		resources, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rules[i].Resources)
		if err != nil {
			return nil, false, fmt.Errorf("encoding the resources of %s: %w", rules[i].ContainerID, err)
		}
		return resources, true, nil
	}
	return nil, false, nil
}

// matchesContainer reports whether an id matches a pattern, in which * stands for one or more characters.
func matchesContainer(pattern, id string) bool {
	quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".+")
	expression, err := regexp.Compile("^" + quoted + "$")
	return err == nil && expression.MatchString(id)
}
