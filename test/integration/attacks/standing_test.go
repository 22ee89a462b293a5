package attacks_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A manager of an add-on, which an administrator trusts, registers what neither the hub manager nor an agent may
// register, and more than an agent may report.
//
// Shows: hub/foreign-registrations
func TestWhatAnotherManagerWroteIntoAStatusKeepsNoOtherWriterOut(t *testing.T) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in("cluster1", "registers-itself")}
	require.NoError(t, shared.admin.Create(t.Context(), addOn))
	patch := func(c client.Client, change func(*addonv1alpha1.ManagedClusterAddOnStatus)) error {
		var before addonv1alpha1.ManagedClusterAddOn
		if err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(addOn), &before); err != nil {
			return err
		}
		after := before.DeepCopy()
		change(&after.Status)
		return c.Status().Patch(t.Context(), after, client.MergeFrom(&before))
	}
	own := addonv1alpha1.RegistrationConfig{
		SignerName: "kubernetes.io/kube-apiserver-client",
		Subject:    addonv1alpha1.Subject{User: "system:proxy", Groups: []string{"proxies"}},
	}
	require.NoError(t, patch(shared.admin, func(s *addonv1alpha1.ManagedClusterAddOnStatus) {
		for range 65 {
			s.Registrations = append(s.Registrations, own)
		}
		for range 520 {
			s.RelatedObjects = append(s.RelatedObjects, addonv1alpha1.ObjectReference{Resource: "x", Name: strings.Repeat("n", 99)})
		}
	}))
	for _, as := range []who{theManager, agent1} {
		c := client.NewDryRunClient(shared.clients[as])
		require.NoError(t, patch(c, func(s *addonv1alpha1.ManagedClusterAddOnStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{
				Type: "Tested", Status: "True", Reason: "Seen", LastTransitionTime: metav1.Now(),
			})
		}), as)
		err := patch(c, func(s *addonv1alpha1.ManagedClusterAddOnStatus) { s.Registrations[3].Subject.User = "system:other" })
		require.True(t, apierrors.IsForbidden(err) || apierrors.IsInvalid(err), "%s: %v", as, err)
	}
}
