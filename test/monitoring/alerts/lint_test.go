package alerts_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/test/monitoring/harness"
)

// reference documents the metrics of our own.
const reference = "../../../docs/reference/metrics.md"

// others are the metrics of client-go and controller-runtime that rules use, with their labels. The fleet of the tests was
// seen to serve them.
func others() map[string][]string {
	return map[string][]string{"controller_runtime_webhook_requests_total": {"webhook", "code"}}
}

// ofTargets are the labels that a PodMonitor adds.
func ofTargets() []string {
	return []string{"job", "namespace", "pod", "instance", "container", "endpoint"}
}

// known are the metrics that exist, with their labels and the values of these that the reference names.
type known struct {
	labels map[string][]string
	values map[string]string
}

// readReference reads the table of metrics.
func readReference(t *testing.T) known {
	t.Helper()
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	k := known{labels: others(), values: map[string]string{"code": "200"}}
	words := regexp.MustCompile("`([a-z_]+)`([^`;]*)")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		name := words.FindStringSubmatch(cells[min(1, len(cells)-1)])
		if len(cells) < 6 || name == nil {
			continue
		}
		labels := []string{}
		for _, word := range words.FindAllStringSubmatch(cells[3], -1) {
			labels = append(labels, word[1])
			k.values[word[1]] += " " + word[2]
		}
		if k.labels[name[1]] = labels; strings.Contains(cells[2], "histogram") {
			k.labels[name[1]+"_count"], k.labels[name[1]+"_sum"] = labels, labels
			k.labels[name[1]+"_bucket"] = append(slices.Clone(labels), "le")
		}
	}
	require.Contains(t, k.labels, "spokelet_build_info")
	return k
}

// problems returns what is wrong with the metrics and labels of an expression.
func (k known) problems(expr parser.Expr) []string {
	var found []string
	all := ofTargets()
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, is := node.(*parser.VectorSelector); is {
			labels, exists := k.labels[selector.Name]
			if !exists {
				found = append(found, "no program serves "+selector.Name)
			}
			all = append(all, labels...)
			found = append(found, k.wrong(selector, labels)...)
		}
		return nil
	})
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		var grouped []string
		switch n := node.(type) {
		case *parser.AggregateExpr:
			grouped = n.Grouping
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				grouped = n.VectorMatching.MatchingLabels
			}
		}
		for _, label := range grouped {
			if !slices.Contains(all, label) {
				found = append(found, "no metric of it has label "+label)
			}
		}
		return nil
	})
	return found
}

// wrong returns what is wrong with the matchers of a selector.
func (k known) wrong(selector *parser.VectorSelector, labels []string) []string {
	var found []string
	for _, m := range selector.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		if !slices.Contains(labels, m.Name) {
			found = append(found, selector.Name+" has no label "+m.Name)
		}
		for value := range strings.SplitSeq(m.Value, "|") {
			code := regexp.MustCompile(`^SPK\d{3}$`).MatchString(value)
			if !code && !regexp.MustCompile(`\b`+regexp.QuoteMeta(value)+`\b`).MatchString(k.values[m.Name]) {
				found = append(found, "label "+m.Name+" has no value "+value)
			}
		}
	}
	return found
}

func TestTheRulesAreThoseOfTheReference(t *testing.T) {
	groups, errs := rulefmt.ParseFile(rules, false, model.LegacyValidation, harness.Parser(), promslog.NewNopLogger())
	require.Empty(t, errs, "what promtool check rules says")
	k := readReference(t)
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			expr, err := harness.Parser().ParseExpr(rule.Expr)
			require.NoError(t, err, rule.Alert)
			assert.Empty(t, k.problems(expr), rule.Alert)
		}
	}
}

func TestTheLintFindsWhatDoesNotExist(t *testing.T) {
	k := readReference(t)
	for query, want := range map[string][]string{
		`spokelet_fleet_clusters{code="SPK031"} > 0`: nil,
		`spokelet_fleet_cluster > 0`:                 {"no program serves spokelet_fleet_cluster"},
		`spokelet_fleet_clusters{cluster="a"}`: {
			"spokelet_fleet_clusters has no label cluster", "label cluster has no value a",
		},
		`spokelet_work_unowned{state=~"held|older"}`:        nil,
		`spokelet_work_unowned{state=~"held|elder"}`:        {"label state has no value elder"},
		`sum by (kind) (spokelet_fleet_certificates_late)`:  nil,
		`sum by (addon) (spokelet_fleet_certificates_late)`: {"no metric of it has label addon"},
		`sum(up) / on (addon) spokelet_work_works`:          {"no program serves up", "no metric of it has label addon"},
	} {
		expr, err := harness.Parser().ParseExpr(query)
		require.NoError(t, err, query)
		assert.Equal(t, want, k.problems(expr), query)
	}
}
