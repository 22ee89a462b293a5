package rollout_test

import (
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/manifests"
)

// applySample lets the API server check a sample, every field of it. Nothing is stored: a freeze would hold the add-ons
// of all tests.
func applySample(t *testing.T, file string, o client.Object) {
	t.Helper()
	raw, err := fs.ReadFile(manifests.Samples(), "policies/"+file)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(raw, o))
	require.NoError(t, plane.Client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict")))
}

// Shows: policies/policy-samples
func TestTheSamplesOfPoliciesSayWhatTheirCommentsSay(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(manifests.Samples(), "policies/[0-9]*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 5, "each has a test below")
	ship := gate.Cluster{
		Labels: map[string]string{"kind": "ship"}, Claims: map[string]string{"timezone.example.com": "Pacific/Auckland"},
	}
	at := func(text string) time.Time {
		instant, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return instant
	}
	window := func(file string) gate.Gate {
		w := policies.MaintenanceWindow{}
		applySample(t, file, &w)
		status, _ := gate.Report(&w, []gate.Cluster{ship}, at("2026-11-30T12:00:00Z"))
		assert.Empty(t, status.Problem)
		assert.EqualValues(t, 1, status.Clusters)
		return gate.New("logs", nil, []policies.MaintenanceWindow{w})
	}
	policy := func(file string) gate.Gate {
		p := policies.AddOnPolicy{}
		applySample(t, file, &p)
		return gate.New(p.Name, &p, nil).After(p.Name, gate.NewOrder([]policies.AddOnPolicy{p}), func(string) bool { return true })
	}
	freeze := window("10-freeze.yaml")
	assert.Contains(t, freeze.Judge(ship, "", at("2026-12-24T18:00:00Z")).Held, "december denies it; it may begin at 2026-12-31T23:00:00Z")
	assert.Empty(t, freeze.Judge(ship, "", at("2027-01-01T00:00:00Z")).Held)
	assert.Empty(t, freeze.Judge(ship, "", at("2030-12-24T18:00:00Z")).Held, "it has ended")

	nights := window("20-nights.yaml")
	assert.Contains(t, nights.Judge(ship, "", at("2026-12-01T11:00:00Z")).Held, "it may begin at 2026-12-01T12:00:00Z")
	assert.Empty(t, nights.Judge(ship, "", at("2026-12-01T13:00:00Z")).Held, "it is two at night in Auckland")
	assert.Contains(t, nights.Judge(gate.Cluster{Labels: ship.Labels}, "", at("2026-12-01T13:00:00Z")).Held, "has no claim timezone.example.com")

	wave := gate.Wave{Key: "x", Title: "decision group 0 (canary) of placement ns/p"}
	assert.Contains(t, policy("30-approval.yaml").In(wave).Judge(ship, "c", at("2026-12-01T13:00:00Z")).Held, wave.Title)
	action, after := policy("40-undo.yaml").OnFailure()
	assert.Equal(t, policies.ActionUndo, action)
	assert.Equal(t, 10*time.Minute, after)

	gateway := policy("50-dependency.yaml")
	without := gate.Cluster{Before: map[string]gate.State{"network": {Absent: true}}}
	assert.Contains(t, gateway.Judge(without, "", at("2026-12-01T13:00:00Z")).Held, "depends on add-on network, which is not on this cluster")
	assert.Equal(t, policies.RemovalsInWindows, gateway.Policy().Spec.Removals)
}
