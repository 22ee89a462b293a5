package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

// The clock of the agent is an hour behind. It wrote that it has asked for the certificate of a new add-on.
func TestALabelWaitsAlsoForAnAgentWhoseClockIsBehind(t *testing.T) {
	f := settledFacts()
	addon := &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: "a", CreationTimestamp: metav1.NewTime(f.now.Add(-2 * time.Second)),
			OwnerReferences: []metav1.OwnerReference{{Kind: "ClusterManagementAddOn", Name: "a"}},
		},
		Status: addonv1beta1.ManagedClusterAddOnStatus{Conditions: []metav1.Condition{
			{Type: "RegistrationApplied", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(f.now.Add(-time.Second))},
			{Type: "ClusterCertificateRotated", Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(f.now.Add(-time.Hour))},
		}},
	}
	other := addon.DeepCopy()
	other.Name, other.OwnerReferences[0].Name, other.Status.Conditions = "b", "b", nil
	f.addons = []*addonv1beta1.ManagedClusterAddOn{addon, other}
	assert.True(t, labelDue(addon).After(f.now), "the label of an add-on that is two seconds old is due at %s, now is %s",
		labelDue(addon), f.now)
	want := wantedCluster(f)
	if want != nil {
		assert.NotContains(t, want.Labels, featurePrefix+"a")
		assert.NotContains(t, want.Labels, featurePrefix+"b", "another add-on, of which nobody said anything")
	}
}

// What reconcile.Behind says is a lost race: repeated quietly.
func TestACacheThatIsBehindIsNoErrorInTheLog(t *testing.T) {
	have := renderGrants("c1", true)
	cached := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "c1", UID: "u", Annotations: map[string]string{names.AnnotationAcceptedOn: "2026-03-01T11:00:00Z"},
	}}
	live := cached.DeepCopy()
	live.Spec.HubAcceptsClient = true
	c := hubWith(t, cached, have.role, have.binding, have.registration, have.work)
	result, err := reconcilerOf(c, hubWith(t, live)).Reconcile(t.Context(), requestOf("c1"))
	require.NoError(t, err, "controller-runtime logs it as an error with a stack, and counts it")
	assert.True(t, result.Requeue)
}

// nothing is an empty cache.
type nothing struct{ cache.Cache }

func (nothing) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
