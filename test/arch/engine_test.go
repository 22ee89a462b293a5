package arch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// module is the path of this module.
const module = "github.com/spokelet/spokelet"

// graph maps the packages of this module, by their path below its root, to what they import: packages of this module by
// the same kind of path, all others in full.
type graph map[string][]string

// judge returns every import that breaks a rule, in a stable order.
func judge(g graph, rules []rule) []string {
	var violations []string
	for from, imports := range g {
		for _, r := range rules {
			if !matchesAny(r.from, from) || matchesAny(r.except, from) {
				continue
			}
			for _, to := range imports {
				if r.breaks(g, from, to) {
					violations = append(violations, fmt.Sprintf("%s: %s imports %s", r.name, from, to))
				}
			}
		}
	}
	slices.Sort(violations)
	return slices.Compact(violations)
}

// breaks reports whether the import of one package by another breaks the rule.
func (r rule) breaks(g graph, from, to string) bool {
	if matchesAny(r.never, to) {
		return true
	}
	_, ours := g[to]
	below := strings.HasPrefix(to, from+"/")
	return r.only != nil && ours && !below && !matchesAny(r.only, to)
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, path) })
}

func matches(pattern, path string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == tree || strings.HasPrefix(path, tree+"/")
	}
	if tree, ok := strings.CutSuffix(pattern, "/*"); ok {
		return strings.HasPrefix(path, tree+"/")
	}
	return path == pattern
}

func TestMatches(t *testing.T) {
	for pattern, want := range map[string]map[string]bool{
		"agent":     {"agent": true, "agent/work": false, "agents": false, "": false},
		"agent/*":   {"agent": false, "agent/work": true, "agent/work/x": true, "agents/work": false},
		"agent/...": {"agent": true, "agent/work": true, "agents": false, "x/agent": false},
	} {
		for path, matched := range want {
			assert.Equal(t, matched, matches(pattern, path), "%s and %s", pattern, path)
		}
	}
}

// Each graph breaks one rule by one import, so that a rule that stopped working would be seen.
func TestTheRulesReportWhatBreaksThem(t *testing.T) {
	sound := graph{
		"cmd/spokelet": {"agent", "os"}, "cmd/spokelet-hub": {"hub"},
		"agent":      {"agent/work", "agent/join", "internal/names", "github.com/spf13/pflag", "lease"},
		"agent/work": {"internal/reconcile", "lease", "csr", "agent/work/inventory"}, "agent/join": {"csr", "csr/issue"},
		"agent/work/inventory": {"internal/names"},
		"hub":                  {"hub/approval", "hub/addon", "hub/deploy"},
		"hub/approval":         {"csr/approve", "csr/sign", "hub/addon", "internal/addonapi"}, "hub/deploy": {"hub/addon"},
		"hub/addon":         {"lease", "csr/approve", "open-cluster-management.io/api/work/v1"},
		"hub/addon/manager": {"hub/addon", "hub/approval", "hub/deploy", "internal/names", "github.com/spf13/pflag"},
		"lease":             {"internal/names"}, "csr": {"internal/names", "crypto/x509"},
		"csr/issue": {"csr"}, "csr/approve": {"csr", "internal/message"}, "csr/sign": {"csr"},
		"hub/render":     {"hub/deploy", "manifests", "github.com/spf13/pflag"},
		"internal/names": {}, "internal/reconcile": {"internal/names"}, "internal/addonapi": {"internal/reconcile"},
		"manifests": {"embed"}, "test/sandbox": {"manifests", "testing"}, "test/integration/x": {"test/sandbox", "agent"},
	}
	assert.Empty(t, judge(sound, importRules))
	for name, edge := range map[string][2]string{
		"a command imports a reconciler":             {"cmd/spokelet", "agent/work"},
		"a command imports the other root":           {"cmd/spokelet", "hub"},
		"a command imports the kit":                  {"cmd/spokelet-hub", "internal/names"},
		"the agent imports the hub":                  {"agent", "hub"},
		"a reconciler of the agent imports a hub's":  {"agent/work", "hub/approval"},
		"the hub imports the agent":                  {"hub", "agent"},
		"the hub imports a reconciler of the agent":  {"hub", "agent/join"},
		"a reconciler imports a sibling":             {"agent/work", "agent/join"},
		"a reconciler imports its root":              {"agent/work", "agent"},
		"a reconciler of the hub imports a sibling":  {"hub/approval", "hub/deploy"},
		"a reconciler of the hub imports its root":   {"hub/approval", "hub"},
		"a reconciler knows flags":                   {"agent/work", "github.com/spf13/pflag"},
		"a library knows flags":                      {"lease", "flag"},
		"the author's library imports a reconciler":  {"hub/addon", "hub/deploy"},
		"an author's program imports the other root": {"hub/addon/manager", "hub"},
		"a library imports the kit":                  {"csr", "internal/reconcile"},
		"a library imports another":                  {"csr", "lease"},
		"what both sides agree on imports a room":    {"csr", "csr/issue"},
		"a room imports another":                     {"csr/approve", "csr/sign"},
		"the agent judges requests":                  {"agent/join", "csr/approve"},
		"the hub asks for certificates":              {"hub/approval", "csr/issue"},
		"the kit imports a library":                  {"internal/reconcile", "csr"},
		"names import something":                     {"internal/names", "internal/reconcile"},
		"manifests import something":                 {"manifests", "internal/names"},
		"shipped code imports the sandbox":           {"hub/approval", "test/sandbox"},
		"shipped code imports testing":               {"internal/reconcile", "testing"},
		"shipped code imports testify":               {"csr", "github.com/stretchr/testify/require"},
		"somebody imports the reference":             {"hub/deploy", "open-cluster-management.io/sdk-go/pkg/patcher"},
		"a test imports the reference":               {"test/sandbox", "open-cluster-management.io/ocm/pkg/work"},
		"the agent links Helm":                       {"agent/work", "helm.sh/helm/v3/pkg/engine"},
		"the rendering imports another reconciler":   {"hub/render", "hub/approval"},
		"a reconciler imports the rendering":         {"hub/deploy", "hub/render"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := graph{}
			for from, imports := range sound {
				broken[from] = slices.Clone(imports)
			}
			broken[edge[0]] = append(broken[edge[0]], edge[1])
			violations := judge(broken, importRules)
			assert.NotEmpty(t, violations)
			for _, violation := range violations {
				assert.Contains(t, violation, ": "+edge[0]+" imports "+edge[1])
			}
		})
	}
}

// An import of a sibling that is not below a package in the table is one upward or sideways.
func TestInsideAgentWorkImportsGoOneWay(t *testing.T) {
	for name, siblings := range workImports {
		for other := range workImports {
			below := strings.HasPrefix(other, name+"/")
			if name == other || below {
				continue
			}
			from, to := "agent/work/"+name, "agent/work/"+other
			violations := judge(graph{from: {to, "internal/names"}, to: {}, "internal/names": {}}, workRules())
			assert.Equal(t, !slices.Contains(siblings, other), len(violations) == 1, "%s imports %s", from, to)
			assert.False(t, slices.Contains(siblings, other) && slices.Contains(workImports[other], name),
				"%s and %s import each other", from, to)
		}
		up := judge(graph{"agent/work/" + name: {"agent/work"}, "agent/work": {}}, workRules())
		assert.Len(t, up, 1, "%s imports agent/work", name)
	}
}

func TestEveryRuleSaysWhatItIs(t *testing.T) {
	for _, r := range importRules {
		assert.NotEmpty(t, r.name)
		assert.NotEmpty(t, r.from, r.name)
		assert.True(t, r.only != nil || len(r.never) > 0, "%s forbids nothing", r.name)
	}
}
