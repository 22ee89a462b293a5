package addon_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
)

// fed returns what a cluster fed back about Deployment weather/name; values under -1 are not fed back.
func fed(name string, replicas, ready int64) addon.ProbeResult {
	result := addon.ProbeResult{ResourceIdentifier: workv1.ResourceIdentifier{
		Group: "apps", Resource: "deployments", Namespace: "weather", Name: name,
	}}
	for key, value := range map[string]int64{"Replicas": replicas, "ReadyReplicas": ready} {
		if value >= 0 {
			result.Values = append(result.Values, workv1.FeedbackValue{
				Name: key, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &value},
			})
		}
	}
	return result
}

// Shows: hub/library-health
func TestDeploymentProber(t *testing.T) {
	prober := addon.NewDeploymentProber(types.NamespacedName{Namespace: "weather", Name: "a"},
		types.NamespacedName{Namespace: "weather", Name: "b"})
	require.Equal(t, addon.HealthWork, prober.Type)
	require.Len(t, prober.Work.Fields, 2)
	assert.Equal(t, fed("b", 0, 0).ResourceIdentifier, prober.Work.Fields[1].ResourceIdentifier)
	tests := map[string]struct {
		results []addon.ProbeResult
		says    string
	}{
		"a ready pod of each is enough":        {[]addon.ProbeResult{fed("a", 3, 1), fed("b", 1, 1)}, ""},
		"one scaled to zero needs none":        {[]addon.ProbeResult{fed("a", 0, -1), fed("b", 1, 1)}, ""},
		"no ready pod is not healthy":          {[]addon.ProbeResult{fed("a", 2, 0), fed("b", 1, 1)}, "no pod of Deployment weather/a is ready (0 of 2)"},
		"no count of ready pods is none ready": {[]addon.ProbeResult{fed("a", 2, -1), fed("b", 1, 1)}, "weather/a is ready"},
		"unknown replicas are not healthy":     {[]addon.ProbeResult{fed("a", -1, 1), fed("b", 1, 1)}, "does not report the replicas of Deployment weather/a"},
		"one without a report is not healthy":  {[]addon.ProbeResult{fed("a", 1, 1)}, "reports nothing yet about Deployment weather/b"},
		"all problems are told":                {[]addon.ProbeResult{fed("a", 2, 0), fed("b", 2, 0)}, "weather/b is ready"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			err := prober.Work.Check(addon.ProbeRequest{Results: tc.results})
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
}

func TestProbersAreFoundByTheirNames(t *testing.T) {
	for want, prober := range map[addon.HealthProbe]addon.HealthProber{
		addon.HealthLease: addon.NewLeaseProber(), addon.HealthDeployments: addon.NewAllDeploymentsProber(),
		addon.HealthWorkloads: addon.NewAllWorkloadsProber(), addon.HealthWork: addon.NewWorkProber(nil),
	} {
		resolved, err := build(t, addon.Options{HealthProber: prober}).Resolve(t.Context(), request(t))
		require.NoError(t, err)
		assert.Equal(t, want, resolved.Setup.Health)
	}
}

func TestAHealthCheckThatPanicsIsNotHealthy(t *testing.T) {
	agent := build(t, addon.Options{HealthProber: addon.NewWorkProber(func(addon.ProbeRequest) error { panic("no station") })})
	r := request(t)
	resolved, err := agent.Resolve(t.Context(), r)
	require.NoError(t, err)
	err = resolved.Setup.WorkProbe.Check(addon.ProbeRequest{Cluster: r.Cluster, AddOn: r.AddOn})
	require.ErrorContains(t, err, "add-on weather on cluster c1")
	require.ErrorContains(t, err, "no station")
}
