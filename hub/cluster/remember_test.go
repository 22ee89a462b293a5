package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/csr/approve"
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

func TestADenialIsRecordedOnTheNamespace(t *testing.T) {
	recorded := func(on string) func(*facts) {
		return func(f *facts) { f.namespace.Annotations = map[string]string{names.AnnotationDeniedOn: on} }
	}
	denied := func(f *facts) { f.cluster.Spec.HubAcceptsClient = false }
	isNew := func(f *facts) {
		denied(f)
		f.cluster.Annotations, f.cluster.Status.Conditions = nil, nil
		f.requests = []*certificatesv1.CertificateSigningRequest{requestFor(t, "c1", trusted)}
		f.trust = approve.Trust{Users: []string{trusted}}
	}
	deleting := func(f *facts) { f.cluster.DeletionTimestamp = deletedAt() }
	foreign := func(f *facts) { f.namespace.Labels = nil }
	const noon = "2026-03-01T12:00:00Z"
	for sentence, tc := range map[string]struct {
		changes []func(*facts)
		// on is the annotation of the namespace, if it is written.
		written bool
		on      string
		phase   phase
		accepts bool
		// denied reports whether the cluster gets the annotation of a denied one.
		denied bool
	}{
		"of a denied cluster": {[]func(*facts){denied}, true, noon, phaseDenied, false, true},
		"not again":           {[]func(*facts){denied, recorded("x")}, false, "", phaseDenied, false, true},
		"not where the namespace is not of the cluster":   {[]func(*facts){denied, foreign}, false, "", phaseDenied, false, true},
		"of a denied cluster that is deleted before":      {[]func(*facts){denied, deleting}, true, noon, phaseDeleting, false, true},
		"not of an accepted one that is deleted":          {[]func(*facts){deleting}, false, "", phaseDeleting, false, true},
		"a new cluster is accepted on trust":              {[]func(*facts){isNew}, false, "", phaseNew, true, true},
		"not one that was denied: it is denied again":     {[]func(*facts){isNew, recorded("x")}, false, "", phaseNew, false, true},
		"until a person accepts it, which forgets it all": {[]func(*facts){recorded("x")}, true, "", phaseAccepted, false, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			for _, change := range tc.changes {
				change(&f)
			}
			p := decide(f)
			assert.Equal(t, tc.phase, p.phase)
			written := false
			for _, stage := range p.stages {
				for _, s := range stage {
					if namespace, ok := s.After.(*metav1.PartialObjectMetadata); ok {
						written = true
						assert.Equal(t, tc.on, namespace.Annotations[names.AnnotationDeniedOn])
					}
				}
			}
			assert.Equal(t, tc.written, written)
			assert.Equal(t, tc.accepts, p.approvedRequest != nil)
			after := f.cluster
			if p.cluster != nil {
				after = p.cluster
			}
			assert.Equal(t, tc.denied, after.Annotations[names.AnnotationAcceptedOn] != "")
		})
	}
}
