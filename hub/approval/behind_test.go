package approval

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csrs "github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

// formerly is an agent that registered with the hub by earlier values, or by an earlier configuration, and does not any
// more.
type formerly struct{ anyAgent }

func (formerly) Agent(context.Context, string) (addon.Agent, bool, error) {
	return formerly{}, true, nil
}

func (formerly) Resolve(_ context.Context, request addon.Request) (addon.Resolved, error) {
	of := request.AddOn
	earlier := of.Annotations[names.AnnotationValues] == "earlier" || of.Labels["values"] == "earlier" || of.Generation == 1
	for _, reference := range of.Status.ConfigReferences {
		earlier = earlier || reference.DesiredConfig.SpecHash == "earlier"
	}
	if earlier {
		return addon.Resolved{Registrations: []addonv1beta1.RegistrationConfig{kube()}}, nil
	}
	return addon.Resolved{}, nil
}

// An add-on registers with the hub, until a user takes that from it. The hub manager starts with an API server that
// has the add-on as it was before.
//
// Shows: hub/approval-behind
func TestARequestThatOnlyAnEarlierCopyOfTheAddOnAllowsIsNotApproved(t *testing.T) {
	addOn := func(change func(*addonv1alpha1.ManagedClusterAddOn)) *addonv1alpha1.ManagedClusterAddOn {
		made := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: "c1", Name: "hello", UID: "u", Generation: 2,
			Labels: map[string]string{"values": "now"}, Annotations: map[string]string{names.AnnotationValues: "now"},
		}}
		made.Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1beta1.GroupName, Resource: "addontemplates"},
			DesiredConfig: &addonv1alpha1.ConfigSpecHash{
				ConfigReferent: addonv1alpha1.ConfigReferent{Name: "hello"}, SpecHash: "now",
			},
		}}
		change(made)
		return made
	}
	for sentence, earlier := range map[string]func(*addonv1alpha1.ManagedClusterAddOn){
		"control": func(*addonv1alpha1.ManagedClusterAddOn) {},
		"values": func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Annotations = map[string]string{names.AnnotationValues: "earlier"}
		},
		"a spec":  func(a *addonv1alpha1.ManagedClusterAddOn) { a.Generation = 1 },
		"a label": func(a *addonv1alpha1.ManagedClusterAddOn) { a.Labels = map[string]string{"values": "earlier"} },
		"a configuration": func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Status.ConfigReferences[0].DesiredConfig.SpecHash = "earlier"
		},
	} {
		t.Run("the cache has an earlier copy by "+sentence, func(t *testing.T) {
			csr := addonRequest(t, kube(), csrs.ClusterUser("c1", "a"))
			r, _ := newReconciler(t, csr, accepted(), addOn(earlier))
			server, _ := newReconciler(t, csr.DeepCopy(), accepted(), addOn(func(*addonv1alpha1.ManagedClusterAddOn) {}))
			r.Live, r.Agents, r.Configurer = server.Live, formerly{}, unconfigured{}
			result, err := r.Reconcile(t.Context(), requestOf(csr))
			require.NoError(t, err)
			var same certificatesv1.CertificateSigningRequest
			require.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(csr), &same))
			assert.Equal(t, stageOpen, stageOf(&same), "the add-on on the API server does not register that")
			assert.Equal(t, sentence != "control", result.Requeue, "it is a lost race")
		})
	}
}

// What the cache does without, and what agents and hub managers report, holds no approval up.
//
// Shows: hub/approval-behind
func TestWhatDoesNotRegisterAnAddOnHoldsNoApprovalUp(t *testing.T) {
	for sentence, change := range map[string]func(*addonv1alpha1.ManagedClusterAddOn){
		"it was applied with kubectl": func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
		},
		"its health changed": func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionFalse}}
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello", UID: "u"}}
			live := addOn.DeepCopy()
			change(live)
			csr := addonRequest(t, kube(), csrs.ClusterUser("c1", "a"))
			r, _ := newReconciler(t, csr, accepted(), addOn)
			server, _ := newReconciler(t, csr.DeepCopy(), accepted(), live)
			r.Live, r.Agents, r.Configurer = server.Live, approving{}, unconfigured{}
			_, err := r.Reconcile(t.Context(), requestOf(csr))
			require.NoError(t, err)
			var same certificatesv1.CertificateSigningRequest
			require.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(csr), &same))
			assert.NotEqual(t, stageOpen, stageOf(&same))
		})
	}
}
