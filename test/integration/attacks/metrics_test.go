package attacks_test

import (
	"encoding/json"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/spokelet/spokelet/test/sandbox"
)

// counters reads what the hub manager counted of certificate requests from its metrics: "refused <kind> <rule>",
// "approved" and "signed".
func counters(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := sandbox.ReadMetrics(t.Context(), "http://"+shared.metrics)
	require.NoError(t, err)
	counts := map[string]float64{}
	for name, family := range families {
		what, ours := strings.CutPrefix(name, "spokelet_csr_")
		if !ours {
			continue
		}
		what = strings.TrimSuffix(what, "_total")
		for _, metric := range family.Metric {
			key := what
			if what == "refused" {
				key = what + " " + label(metric, "kind") + " " + label(metric, "rule")
			}
			counts[key] += metric.GetCounter().GetValue()
		}
	}
	return counts
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.Label {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// since returns what was counted between two looks.
func since(now, before map[string]float64) map[string]float64 {
	counts := map[string]float64{}
	for key, value := range now {
		if value -= before[key]; value != 0 {
			counts[key] = value
		}
	}
	return counts
}

// refusal holds what the log says of a request that was left alone.
type refusal struct{ Rule, Request, Requester string }

// refusals counts the lines of the log about requests that were left alone.
func refusals(t *testing.T) map[refusal]int {
	t.Helper()
	counts := map[refusal]int{}
	for line := range strings.Lines(shared.manager.Log.String()) {
		var entry struct {
			Msg string
			refusal
		}
		require.NoError(t, json.Unmarshal([]byte(line), &entry), "%s", line)
		if entry.Msg == "left a certificate request alone" {
			counts[entry.refusal]++
		}
	}
	return counts
}

// unique is a value that never was before.
func unique() string { return string(uuid.NewUUID()) }
