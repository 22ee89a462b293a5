package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
)

func TestHowAnAddOnStandsOnACluster(t *testing.T) {
	own, behind := &Problem{}, &Problem{Behind: true}
	for want, cases := range map[Standing][]struct {
		problem *Problem
		stage   Stage
	}{
		StandsBadly:   {{own, StageComplete}, {own, StageMoving}, {own, StageAbsent}, {nil, StageFailed}},
		StandsBehind:  {{behind, StageComplete}, {behind, StageFailed}, {behind, StageWaiting}},
		StandsMoving:  {{nil, StageMoving}},
		StandsWaiting: {{nil, StageWaiting}},
		StandsAbsent:  {{nil, StageAbsent}},
		StandsWell:    {{nil, StageComplete}, {nil, ""}},
	} {
		for _, tc := range cases {
			assert.Equal(t, want, StandingOf(tc.problem, tc.stage))
		}
	}
}

// small is a fleet of some clusters with one add-on, of which the first ones have problems.
func small(cluster string, ill ...string) Fleet {
	var f Fleet
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		var c fleet.Cluster
		c.Metadata.Name, c.Spec.HubAcceptsClient = name, name != cluster
		c.Status.Conditions = []metav1.Condition{
			{Type: "HubAcceptedManagedCluster", Status: metav1.ConditionTrue}, {Type: "ManagedClusterJoined", Status: metav1.ConditionTrue},
			{Type: "ManagedClusterConditionAvailable", Status: metav1.ConditionTrue},
		}
		f.Clusters = append(f.Clusters, c)
		var a fleet.AddOn
		a.Metadata.Namespace, a.Metadata.Name = name, "logs"
		a.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}}
		for _, one := range ill {
			if one == name {
				a.Status.Conditions = []metav1.Condition{
					{Type: names.ConditionWorkloadsReady, Status: metav1.ConditionFalse, Reason: "WorkloadNotReady", Message: "pod x-1 on " + name},
					{Type: "Available", Status: metav1.ConditionFalse},
				}
			}
		}
		f.AddOns = append(f.AddOns, a)
	}
	return f
}

func TestTheMatrixCountsEachClusterOnce(t *testing.T) {
	f := small("", "a", "b")
	rows := Matrix(f, Problems(f), nil)
	require.Len(t, rows, 1)
	assert.Equal(t, AddOnRow{Name: "logs", All: 5, Counts: map[Standing]int{StandsBadly: 2, StandsWell: 3}}, rows[0])
	far := Rollout{Placements: []PlacementRollout{{Stages: []Stages{
		{Stage: StageMoving, Clusters: []string{"a", "c"}}, {Stage: StageWaiting, Clusters: []string{"d"}},
		{Stage: StageComplete, Clusters: []string{"b", "e"}}, {Stage: StageAbsent, Clusters: []string{"f"}},
	}}}}
	rows = Matrix(f, Problems(f), map[string]Rollout{"logs": far})
	assert.Equal(t, map[Standing]int{StandsBadly: 2, StandsMoving: 1, StandsWaiting: 1, StandsAbsent: 1, StandsWell: 1}, rows[0].Counts)
	assert.Equal(t, 6, rows[0].All)
	f.Lacks = func(plural string) bool { return plural == "managedclusteraddons" }
	f.AddOns, f.Definitions = nil, []fleet.Definition{{Metadata: fleet.Meta{Name: "logs"}}}
	assert.True(t, Matrix(f, nil, nil)[0].Unknown)
}

func TestClustersThatAreAlikeAreOneGroupThoseInTroubleFirst(t *testing.T) {
	f := small("e", "b", "d")
	all := Alikes(f, Problems(f))
	require.Len(t, all, 3)
	assert.Equal(t, []string{"e"}, all[0].Clusters)
	assert.Equal(t, causes.ClusterDenied, all[0].Problem.Code)
	assert.Equal(t, []string{"b", "d"}, all[1].Clusters, "their messages differ in names and numbers alone")
	assert.Equal(t, causes.WorkloadNotReady, all[1].AddOns[0].Code)
	assert.Equal(t, []string{"a", "c"}, all[2].Clusters)
	assert.True(t, all[2].Well())
	assert.False(t, all[0].Well() || all[1].Well())
	assert.Empty(t, Alikes(Fleet{}, nil))
}

func TestProblemsByTheirCodesAndHowManyThereAre(t *testing.T) {
	f := small("e", "b", "d")
	groups := Groups(Problems(f))
	findings := []Finding{
		{State: Failed, Code: causes.HubDown}, {State: Warning, Code: causes.CertificateLate}, {State: OK}, {State: Warning},
	}
	problems, warnings := Wrong(groups, findings)
	assert.Equal(t, len(groups)+1, problems)
	assert.Equal(t, 2, warnings)
	var codes []causes.Code
	for _, one := range ByCode(groups, findings) {
		codes = append(codes, one.Code)
		assert.Equal(t, causes.Titles()[one.Code], one.Title)
		if one.Code == causes.WorkloadNotReady {
			assert.Equal(t, 2, one.Count)
		}
	}
	assert.Equal(t, []causes.Code{causes.HubDown, causes.ClusterDenied, causes.CertificateLate, causes.WorkloadNotReady}, codes)
}

func TestTheCertificatesOfACluster(t *testing.T) {
	noon := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	life := func(from, to time.Duration) []metav1.Condition {
		const layout = "2006-01-02 15:04:05 -0700 MST"
		return []metav1.Condition{{
			Type:    names.ConditionCertificateRotated,
			Message: "client certificate rotated starting from " + noon.Add(from).Format(layout) + " to " + noon.Add(to).Format(layout),
		}}
	}
	var c fleet.Cluster
	c.Status.Conditions = life(-time.Hour, time.Hour)
	addOns := make([]fleet.AddOn, 3)
	addOns[0].Metadata.Name, addOns[0].Status.Conditions = "late", life(-9*time.Hour, time.Hour)
	addOns[1].Metadata.Name, addOns[1].Status.Conditions = "ended", life(-9*time.Hour, 0)
	all := Certificates(&c, addOns, noon)
	require.Len(t, all, 3, "one says nothing of its certificate")
	assert.Equal(t, []bool{false, true, true}, []bool{all[0].Late, all[1].Late, all[2].Late})
	assert.Equal(t, []bool{false, false, true}, []bool{all[0].Ended, all[1].Ended, all[2].Ended})
	assert.Equal(t, []string{"", "late", "ended"}, []string{all[0].Of, all[1].Of, all[2].Of})
	assert.Empty(t, Certificates(nil, nil, noon))
}

func TestEachGapHasItsCode(t *testing.T) {
	for want, gap := range map[causes.Code]fleet.Gap{
		causes.RightMissing: {Rule: "x"}, causes.DefinitionMissing: {Missing: true}, causes.ClusterUnreachable: {Silent: true},
		"": {Objects: []string{"x"}},
	} {
		assert.Equal(t, want, CodeOf(gap))
	}
	assert.Equal(t, causes.ClusterUnreachable, CodeOf(fleet.Gap{Refused: true}))
}
