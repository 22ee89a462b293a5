package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// A list without entries is a list: "jq .answer[]" of a fleet that is well must not fail.
func TestAnAnswerWithoutEntriesIsAList(t *testing.T) {
	h := shop()
	h.lists[pathClusters], h.lists[pathAddOns] = h.lists[pathClusters][:40], h.lists[pathAddOns][10:80]
	h.lists[pathRequests], h.lists[pathEvents], h.lists[pathWorks] = nil, nil, []map[string]any{}
	for _, args := range [][]string{{"check"}, {"events", "-A"}, {"get", "works", "-A"}} {
		got := plays(t, h, append(args, "-o", "json")...)
		assert.Equal(t, statusWell, got.status, got.errs)
		assert.NotContains(t, got.out, `"answer": null`, "%v", args)
	}
	got := plays(t, h, "check", "--cluster", "store-001", "-o", "json")
	assert.Contains(t, got.out, `"hub": []`)
	assert.Contains(t, got.out, `"problems": []`)
	got = plays(t, h, "why", "cluster", "store-999", "-o", "json")
	assert.Contains(t, got.out, `"steps": []`)
}

// With "-o name" each line is a name, of every command.
func TestNamesAreNames(t *testing.T) {
	for _, args := range [][]string{{"check"}, {"tree"}, {"rollout", "status", "addon", "logs"}} {
		got := plays(t, shelf(), append(args, "-o", "name")...)
		for line := range strings.Lines(got.out) {
			if !assert.Regexp(t, `^[a-z]+/\S+\n$`, line, "%v", args) {
				break
			}
		}
	}
	got := plays(t, shelf(), "rollout", "status", "addon", "logs", "-o", "name")
	assert.Equal(t, statusProblem, got.status)
	assert.Equal(t, 35, strings.Count(got.out, "\n"), "the clusters that are not complete")
}

// JSON has a way to write each character with ASCII. A person reads it at a terminal, which takes U+009B as an escape.
func TestTextsInJSONDoNoHarmAtATerminal(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		h := shop()
		h.lists[pathClusters][40] = cluster("store-114", condition("ManagedClusterConditionAvailable", "Unknown",
			"ManagedClusterLeaseUpdateStopped", "stop\u009b8m\u202edeppots\u007f", 252))
		got := plays(t, h, "why", "cluster", "store-114", "-o", format)
		for _, bad := range []string{"\u009b", "\u202e", "\u007f"} {
			assert.NotContains(t, got.out, bad, format)
		}
		var a struct {
			Answer struct {
				Problem struct {
					Message string `json:"message"`
				} `json:"problem"`
			} `json:"answer"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(got.out), &a))
		assert.Equal(t, "stop\u009b8m\u202edeppots\u007f", a.Answer.Problem.Message, "a program reads what was written")
	}
}

// The clock of a laptop is some seconds behind that of the hub.
func TestAnInstantThatIsYetToComeIsReadable(t *testing.T) {
	h := shop()
	h.lists[pathClusters][40] = cluster("store-114", condition("ManagedClusterConditionAvailable", "Unknown",
		"ManagedClusterLeaseUpdateStopped", "Registration agent stopped updating its lease.", -1))
	for _, args := range [][]string{{"check"}, {"tree"}, {"why", "cluster", "store-114"}, {"get", "clusters"}} {
		assert.NotContains(t, plays(t, h, args...).out, "<invalid>", "%v", args)
	}
}
