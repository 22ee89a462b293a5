package template

import (
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// resourcesOf returns the resources of a container from the last rule that matches it (docs/reference/hub.md,
// "Decoration of workloads"); false when no rule does. An id consists of resource, object and container, separated by
// colons. An init container gets resources only from a rule that ends in its name, since other rules are about the
// containers that keep running.
func resourcesOf(
	workload, container string, initial bool, rules []addonv1beta1.ContainerResourceRequirements,
) (int, bool) {
	id := workload + ":" + container
	for i := len(rules) - 1; i >= 0; i-- {
		rule := &rules[i]
		if !matchesContainer(rule.ContainerID, id) || (initial && !strings.HasSuffix(rule.ContainerID, ":"+container)) {
			continue
		}
		return i, true
	}
	return 0, false
}

// matchesContainer reports whether an id matches a pattern, in which * stands for one or more characters.
func matchesContainer(pattern, id string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == id
	}
	rest, found := strings.CutPrefix(id, parts[0])
	if !found {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		// The star before the part takes at least one character.
		if rest == "" {
			return false
		}
		at := strings.Index(rest[1:], part)
		if at < 0 {
			return false
		}
		rest = rest[1+at+len(part):]
	}
	return len(rest) > len(last) && strings.HasSuffix(rest, last)
}
