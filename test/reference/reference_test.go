package reference_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/reference"
	"github.com/spokelet/spokelet/test/sandbox"
)

const (
	conditionsHeader = "| type | written by | status and reason | meaning |"
	eventsHeader     = "| reason | type | on | written by | meaning |"
	metricsHeader    = "| metric | type | labels | program | meaning |"
)

// unwritten are reasons of the code that no object ever shows, and why.
var unwritten = map[string]string{
	"NotOurs": "the verdict on a request that is none of ours, about which nothing is written",
}

// unregistered are conditions of the page that the register of writers leaves out, and why.
var unregistered = map[string]string{
	"CertificateSigningRequest Approved": "Kubernetes' own condition, which has many writers by design",
}

func root(t *testing.T) string {
	t.Helper()
	root, err := sandbox.ModuleRoot()
	require.NoError(t, err)
	return root
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "reference", name+".md"))
	require.NoError(t, err)
	return string(text)
}

func TestTheCodeStandsInTheReference(t *testing.T) {
	code, err := reference.Load(root(t))
	require.NoError(t, err)
	t.Run("reasons", func(t *testing.T) { checkReasons(t, code) })
	t.Run("metrics", func(t *testing.T) { checkMetrics(t, code) })
}

func checkReasons(t *testing.T, code *reference.Code) {
	t.Helper()
	require.NotEmpty(t, code.Reasons)
	listed := map[string]bool{}
	for _, row := range reference.Rows(page(t, "conditions"), conditionsHeader) {
		for _, reason := range reference.Names(row[2]) {
			listed[reason] = true
		}
	}
	for _, row := range reference.Rows(page(t, "events"), eventsHeader) {
		for _, reason := range reference.Names(row[0]) {
			listed[reason] = true
		}
	}
	for reason, place := range code.Reasons {
		if unwritten[reason] == "" {
			assert.True(t, listed[reason], "%s: the reason %s stands neither in docs/reference/conditions.md nor in events.md",
				place, reason)
		}
	}
	for reason := range listed {
		assert.Contains(t, code.Reasons, reason, "docs/reference has the reason %s, which nothing in the code gives", reason)
	}
}

func checkMetrics(t *testing.T, code *reference.Code) {
	t.Helper()
	require.NotEmpty(t, code.Metrics)
	listed := map[string]bool{}
	for _, row := range reference.Rows(page(t, "metrics"), metricsHeader) {
		metric := strings.Trim(row[0], "`")
		listed[metric] = true
		labels := slices.DeleteFunc(reference.Names(row[2]), func(name string) bool { return strings.HasPrefix(name, "-") })
		slices.Sort(labels)
		assert.ElementsMatch(t, code.Labels[metric], labels, "docs/reference/metrics.md: the labels of %s", metric)
	}
	for metric, place := range code.Metrics {
		assert.True(t, listed[metric], "%s: docs/reference/metrics.md lacks the metric %s", place, metric)
	}
	for metric := range listed {
		assert.Contains(t, code.Metrics, metric, "docs/reference/metrics.md has the metric %s, which the code does not have", metric)
	}
}

func TestEveryConditionStandsInTheReference(t *testing.T) {
	listed := map[string]bool{}
	for _, section := range strings.Split(page(t, "conditions"), "\n## ")[1:] {
		kind, _, _ := strings.Cut(section, "\n")
		for _, row := range reference.Rows(section, conditionsHeader) {
			for _, condition := range reference.Names(row[0]) {
				listed[kind+" "+condition] = true
			}
		}
	}
	registered := map[string]bool{}
	for _, owner := range names.ConditionOwners() {
		if owner.Type != "" {
			registered[owner.Kind+" "+owner.Type] = true
		}
	}
	for condition := range registered {
		assert.True(t, listed[condition], "docs/reference/conditions.md lacks the condition %s", condition)
	}
	for condition := range listed {
		if unregistered[condition] == "" {
			assert.True(t, registered[condition],
				"docs/reference/conditions.md has the condition %s, which internal/names/conditions.go does not register", condition)
		}
	}
}

func TestEveryFlagStandsInTheReference(t *testing.T) {
	text := page(t, "flags")
	rewritten, err := reference.RewriteFlags(text)
	require.NoError(t, err)
	assert.Equal(t, rewritten, text, "docs/reference/flags.md is not what the programs say: run make rows")
}

func TestEveryCitationResolves(t *testing.T) {
	files, err := reference.Files(root(t), ".go", ".yaml", ".yml", "Makefile")
	require.NoError(t, err)
	headings := map[string][]string{}
	for name, text := range files {
		for _, citation := range reference.Citations(text) {
			if headings[citation.Page] == nil {
				headings[citation.Page] = reference.Headings(page(t, citation.Page))
			}
			assert.Contains(t, headings[citation.Page], citation.Heading,
				"%s cites docs/reference/%s.md, %q, and there is no such heading", name, citation.Page, citation.Heading)
		}
	}
}

func TestCitationsAreReadAcrossLines(t *testing.T) {
	const text = "// X does it (docs/reference/work.md, \"Order of\n\t// applying\" and \"Eviction\"), and\n// docs/reference/hub.md, " +
		"\"Health\".\n"
	assert.Equal(t, []reference.Citation{
		{Page: "work", Heading: "Order of applying"}, {Page: "work", Heading: "Eviction"}, {Page: "hub", Heading: "Health"},
	}, reference.Citations(text))
}
