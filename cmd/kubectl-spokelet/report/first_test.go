package report

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
)

// decoded reads an object.
func decoded[T any](t *testing.T, raw string) *T {
	t.Helper()
	var o T
	require.NoError(t, json.Unmarshal([]byte(raw), &o))
	return &o
}

func TestWhyAnAddOnIsNotInstalled(t *testing.T) {
	cluster := decoded[fleet.Cluster](t, `{"metadata": {"name": "c"}, "spec": {"hubAcceptsClient": true},
		"status": {"conditions": [{"type": "ManagedClusterJoined", "status": "True"}]}}`)
	placed := decoded[fleet.Definition](t, `{"metadata": {"name": "a"}, "spec": {"installStrategy": {
		"type": "Placements", "placements": [{"namespace": "ns", "name": "p"}]}}}`)
	says := func(raw string) []fleet.Placement {
		return []fleet.Placement{*decoded[fleet.Placement](t, `{"metadata": {"namespace": "ns", "name": "p"},
			"status": {"conditions": [`+raw+`]}}`)}
	}
	decides := func(raw string) []fleet.Decision {
		return []fleet.Decision{*decoded[fleet.Decision](t, `{"metadata": {"namespace": "ns", "labels": {"`+
			names.LabelPlacement+`": "p"}}, "status": {"decisions": [`+raw+`]}}`)}
	}
	for sentence, tc := range map[string]struct {
		of   AddOnFacts
		code causes.Code
		says string
	}{
		"there is no cluster":    {AddOnFacts{}, causes.ClusterMissing, "no ManagedCluster"},
		"there is no definition": {AddOnFacts{Cluster: cluster}, causes.AddOnMissing, "no ClusterManagementAddOn"},
		"it is installed by hand": {
			AddOnFacts{Cluster: cluster, Definition: &fleet.Definition{}}, causes.AddOnMissing, "the install strategy is Manual",
		},
		"there is no placement": {
			AddOnFacts{Cluster: cluster, Definition: placed}, causes.PlacementMissing, "placement ns/p of the install strategy",
		},
		"the placement selects nothing": {
			AddOnFacts{Cluster: cluster, Definition: placed, Decisions: decides(""),
				Placements: says(`{"type": "PlacementSatisfied", "status": "False", "message": "No set"}`)},
			causes.PlacementEmpty, "placement ns/p selects no cluster: No set",
		},
		"the placement is wrong": {
			AddOnFacts{Cluster: cluster, Definition: placed,
				Placements: says(`{"type": "PlacementMisconfigured", "status": "True", "message": "no such score"}`)},
			causes.PlacementEmpty, "selects no cluster: no such score",
		},
		"nobody decides the placement": {
			AddOnFacts{Cluster: cluster, Definition: placed, Placements: says("")}, causes.PlacementEmpty, "no placement controller",
		},
		"the placement selects others": {
			AddOnFacts{Cluster: cluster, Definition: placed, Decisions: decides(`{"clusterName": "d"}`), Placements: says("")},
			causes.AddOnMissing, "no placement of the install strategy selects the cluster",
		},
		"the placement selects it": {
			AddOnFacts{Cluster: cluster, Definition: placed, Decisions: decides(`{"clusterName": "c"}`), Placements: says("")},
			causes.AddOnMissing, "the hub manager has not installed it yet",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := AddOnChain("c", "a", tc.of)
			require.NotNil(t, got.Problem)
			assert.Equal(t, tc.code, got.Problem.Code)
			assert.Contains(t, got.Problem.Message, tc.says)
			assert.False(t, got.Healthy)
		})
	}
}

func TestWhatOfAClusterExplainsItsAddOns(t *testing.T) {
	addOn := func(kind, status, reason string) *fleet.AddOn {
		a := &fleet.AddOn{}
		a.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason}}
		return a
	}
	silent := decoded[fleet.Cluster](t, `{"spec": {"hubAcceptsClient": true},
		"status": {"conditions": [{"type": "ManagedClusterConditionAvailable", "status": "Unknown"}]}}`)
	refused := addOn("RegistrationApplied", "False", "SetPermissionFailed")
	for sentence, tc := range map[string]struct {
		cluster *fleet.Cluster
		addOn   *fleet.AddOn
		code    causes.Code
	}{
		"a cluster that is not in explains all":              {&fleet.Cluster{}, refused, causes.ClusterNotAccepted},
		"a silent one does not explain what the hub refuses": {silent, refused, causes.RegistrationFailed},
		"a silent one explains a lease that stopped": {
			silent, addOn("Available", "False", "ManagedClusterAddOnLeaseUpdateStopped"), causes.ClusterSilent,
		},
		"an add-on without a cluster": {nil, refused, causes.ClusterMissing},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := AddOnChain("c", "a", AddOnFacts{Cluster: tc.cluster, AddOn: tc.addOn})
			require.NotNil(t, got.Problem)
			assert.Equal(t, tc.code, got.Problem.Code)
		})
	}
}

func TestTheCodeOfACertificateRequest(t *testing.T) {
	request := func(addOn string, conditions ...fleet.RequestCondition) *fleet.Request {
		r := &fleet.Request{}
		r.Metadata.Name, r.Metadata.Labels = "r", map[string]string{names.LabelClusterName: "c", names.LabelAddonName: addOn}
		r.Status.Conditions = conditions
		return r
	}
	approved, denied := fleet.RequestCondition{Type: "Approved"}, fleet.RequestCondition{Type: "Denied"}
	for code, r := range map[causes.Code]*fleet.Request{
		causes.RequestPending: request(""), causes.RequestDenied: request("", denied), causes.RequestUnsigned: request("", approved),
		causes.RequestWaits: request("a"), causes.RequestRefused: request("a", denied), causes.RequestNotSigned: request("a", approved),
		causes.ObjectMissing: nil,
	} {
		assert.Equal(t, code, RequestChain("r", r).Problem.Code)
	}
	// That of the agent explains why a cluster has not joined.
	accepted := &fleet.Cluster{}
	accepted.Metadata.Name, accepted.Spec.HubAcceptsClient = "c", true
	got := ClusterChain("c", ClusterFacts{Cluster: accepted, Requests: []fleet.Request{*request("", denied)}})
	assert.Equal(t, causes.RequestDenied, got.Problem.Code)
}

// That the clock of a cluster is wrong does not explain that no hub manager looks after its add-ons.
func TestAnAddOnWithoutAHubManagerIsSeenOnAClusterThatWorks(t *testing.T) {
	f := Fleet{
		Clusters: []fleet.Cluster{*decoded[fleet.Cluster](t, `{"metadata": {"name": "c"}, "spec": {"hubAcceptsClient": true},
			"status": {"conditions": [{"type": "ManagedClusterJoined", "status": "True"},
			{"type": "ManagedClusterConditionAvailable", "status": "True"},
			{"type": "ManagedClusterConditionClockSynced", "status": "False"}]}}`)},
		AddOns: []fleet.AddOn{*decoded[fleet.AddOn](t, `{"metadata": {"namespace": "c", "name": "a"}}`)},
	}
	var codes []causes.Code
	for _, g := range Groups(Problems(f)) {
		codes = append(codes, g.First.Code)
	}
	assert.Equal(t, []causes.Code{causes.ClocksDiffer, causes.AddOnUnmanaged}, codes)
}

// Of several Placements that select a cluster, the last one decides about it. An add-on that waits for its turn in the
// last one is not held up by a rollout that stopped on others.
func TestARolloutThatDoesNotDecideAboutAClusterDoesNotHoldItUp(t *testing.T) {
	const both = `{"metadata": {"name": "a"}, "spec": {"installStrategy": {"type": "Placements",
		"placements": [{"namespace": "ns", "name": "all"}, {"namespace": "ns", "name": "mine"}]}},
		"status": {"installProgressions": [
			{"namespace": "ns", "name": "all", "conditions": [{"type": "Progressing", "status": "True", "reason": "Progressing",
				"message": "the rollout stopped: 5 clusters failed"}]},
			{"namespace": "ns", "name": "mine", "conditions": [{"type": "Progressing", "status": "True", "reason": "Progressing",
				"message": "1/9 progressing"}]}]}}`
	decides := func(placement string) fleet.Decision {
		return *decoded[fleet.Decision](t, `{"metadata": {"namespace": "ns", "name": "`+placement+`-1", "labels": {"`+
			names.LabelPlacement+`": "`+placement+`"}}, "status": {"decisions": [{"clusterName": "c"}]}}`)
	}
	f := AddOnFacts{
		AddOn: decoded[fleet.AddOn](t, `{"metadata": {"namespace": "c", "name": "a"}, "status": {"conditions": [
			{"type": "Configured", "status": "False", "message": "Configurations updated and not configured yet"},
			{"type": "Available", "status": "True"}]}}`),
		Cluster: decoded[fleet.Cluster](t, `{"metadata": {"name": "c"}, "spec": {"hubAcceptsClient": true},
			"status": {"conditions": [{"type": "ManagedClusterJoined", "status": "True"}]}}`),
		Definition: decoded[fleet.Definition](t, both), Decisions: []fleet.Decision{decides("all"), decides("mine")},
	}
	rollout := RolloutOf("a", f.Definition, []fleet.AddOn{*f.AddOn}, f.Decisions)
	require.Empty(t, rollout.Placements[0].Stages, "rollout status counts the cluster to the last placement")
	require.Len(t, rollout.Placements[1].Stages, 1)
	chain := AddOnChain("c", "a", f)
	assert.True(t, chain.Healthy, "%+v", chain.Problem)
}
