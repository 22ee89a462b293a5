package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

func TestWhetherAClusterWasAcceptedBefore(t *testing.T) {
	accepted := []metav1.Condition{
		condition(clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, reasonAccepted, noon()),
	}
	tests := map[string]struct {
		name        string
		annotations map[string]string
		conditions  []metav1.Condition
		want        phase
		remembered  bool
	}{
		"a new cluster was not":           {"c1", nil, nil, phaseNew, false},
		"one that has the annotation was": {"c1", map[string]string{names.AnnotationAcceptedOn: "x"}, nil, phaseDenied, true},
		"one that only says so at its creation was not": {
			"c1", map[string]string{names.AnnotationAutoAcceptedOn: "x"}, nil, phaseNew, false,
		},
		"one of a hub without annotations":  {"c1", nil, accepted, phaseDenied, true},
		"a name that cannot be was neither": {"work", map[string]string{names.AnnotationAcceptedOn: "x"}, accepted, phaseNew, true},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			f.name, f.cluster.Name = tc.name, tc.name
			f.cluster.Spec.HubAcceptsClient, f.cluster.Annotations = false, tc.annotations
			f.cluster.Status.Conditions = tc.conditions
			p := decide(f)
			assert.Equal(t, tc.want, p.phase)
			after := f.cluster
			if p.cluster != nil {
				after = p.cluster
			}
			assert.Equal(t, tc.remembered, after.Annotations[names.AnnotationAcceptedOn] != "")
			if tc.want == phaseNew {
				for _, s := range p.stages {
					for _, step := range s {
						assert.NotEqual(t, reconcile.Patch, step.Verb, "no access is written: %s", step.Object().GetName())
					}
				}
			}
		})
	}
}

func TestAnAcceptedClusterIsRememberedBeforeItGetsAccess(t *testing.T) {
	f := settledFacts()
	f.cluster.Annotations, f.cluster.Finalizers, f.have = nil, nil, grants{}
	p := decide(f)
	require.NotNil(t, p.cluster)
	assert.Equal(t, "2026-03-01T12:00:00Z", p.cluster.Annotations["cluster.spokelet.io/accepted-on"])
	assert.Contains(t, p.cluster.Finalizers, names.FinalizerCluster, "in one write")
	require.NotEmpty(t, p.stages, "the stages run after the cluster is written")

	f = settledFacts()
	f.now = f.now.AddDate(1, 0, 0)
	assert.Equal(t, "2026-03-01T11:00:00Z", wanted(f).Annotations["cluster.spokelet.io/accepted-on"], "it is never moved")
}

// wanted is the cluster as it shall be.
func wanted(f facts) *clusterv1.ManagedCluster {
	if want := wantedCluster(f); want != nil {
		return want
	}
	return f.cluster
}
