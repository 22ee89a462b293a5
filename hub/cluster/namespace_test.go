package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
)

func TestWhoseNamespaceItIs(t *testing.T) {
	for sentence, tc := range map[string]struct {
		edit func(f *facts)
		own  bool
	}{
		"one that does not exist becomes that of the cluster": {func(f *facts) { f.namespace = nil }, true},
		"one with our label is":                               {func(f *facts) { f.namespace.Labels = map[string]string{names.LabelClusterName: "c1"} }, true},
		"one with the label of OCM is":                        {func(f *facts) { f.namespace.Labels = map[string]string{names.LabelOCMCluster: "c1"} }, true},
		"one without a label is of others":                    {func(*facts) {}, false},
		"one with the label of another cluster is, too":       {func(f *facts) { f.namespace.Labels = map[string]string{names.LabelClusterName: "c2"} }, false},
		"one that lost its label needs an administrator":      {func(f *facts) { f.have = renderGrants("c1", true) }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			f.namespace.Labels, f.have = nil, grants{}
			tc.edit(&f)
			p := decide(f)
			assert.Equal(t, tc.own, p.foreign == nil)
			if !tc.own {
				assert.Empty(t, steps(p), "nothing is written for the cluster")
				ready := meta.FindStatusCondition(conditions(f, p, nil), names.ConditionNamespaceReady)
				assert.Contains(t, ready.Message, "kubectl label namespace c1 open-cluster-management.io/cluster-name=c1")
			}

			// Nobody accepts a new cluster automatically there.
			f.cluster.Spec.HubAcceptsClient, f.cluster.Annotations, f.cluster.Status.Conditions = false, nil, nil
			f.trust = approve.Trust{Users: []string{trusted}}
			f.requests = []*certificatesv1.CertificateSigningRequest{requestFor(t, "c1", trusted)}
			p = decide(f)
			assert.Equal(t, tc.own, p.cluster != nil && p.cluster.Spec.HubAcceptsClient)
		})
	}
}

func TestTheConditionOfANamespaceIsThereOnlyWhereThereWasSomethingToSay(t *testing.T) {
	f := settledFacts()
	assert.Nil(t, meta.FindStatusCondition(conditions(f, decide(f), nil), names.ConditionNamespaceReady))
	f.cluster.Status.Conditions = append(f.cluster.Status.Conditions, metav1.Condition{
		Type: names.ConditionNamespaceReady, Status: metav1.ConditionFalse, Reason: reasonNamespaceForeign,
	})
	assert.True(t, meta.IsStatusConditionTrue(conditions(f, decide(f), nil), names.ConditionNamespaceReady))
	assert.True(t, meta.IsStatusConditionTrue(conditions(f, decide(f), nil), clusterv1.ManagedClusterConditionHubAccepted))
}
