package addonapi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

func conditionThat(kind string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "R", LastTransitionTime: metav1.NewTime(time.Unix(1000, 0))}
}

// The agent writes that it is not available between the read of a pass and its writes. The pass writes metadata or the
// references, and then its conditions with the resourceVersion that it got. What the agent wrote must stay, or the write
// must be a conflict.
func TestTheStatusOfAnAgentIsNotPutBack(t *testing.T) {
	for _, wire := range []Wire{WireAlpha, WireBeta} {
		for name, first := range map[string]func(c Client, before *addonv1beta1.ManagedClusterAddOn) (*addonv1beta1.ManagedClusterAddOn, error){
			"finalizers": func(c Client, before *addonv1beta1.ManagedClusterAddOn) (*addonv1beta1.ManagedClusterAddOn, error) {
				after := before.DeepCopy()
				after.Finalizers = []string{"a/b"}
				_, err := c.PatchAddOn(t.Context(), before, after)
				return after, err
			},
		} {
			t.Run(string(wire)+" "+name, func(t *testing.T) {
				scheme := runtime.NewScheme()
				require.NoError(t, addonv1alpha1.Install(scheme))
				require.NoError(t, addonv1beta1.Install(scheme))
				beta := fixture.AddOn("c1", fixture.Has(fixture.Template("t"), "old"))
				beta.UID, beta.Name = "u", "a"
				beta.Status.Conditions = []metav1.Condition{conditionThat("Available", metav1.ConditionTrue)}
				var object client.Object = beta
				if wire == WireAlpha {
					object = AddOnToAlpha(beta)
				}
				cl := fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).WithStatusSubresource(object).Build()
				c := Client{Client: cl, Wire: wire}
				key := client.ObjectKeyFromObject(object)
				cached, err := c.GetAddOn(t.Context(), key)
				require.NoError(t, err)

				agent := cached.DeepCopy()
				meta.SetStatusCondition(&agent.Status.Conditions, conditionThat("Available", metav1.ConditionFalse))
				_, err = c.PatchAddOnStatus(t.Context(), cached, agent)
				require.NoError(t, err)

				before, err := first(c, cached)
				require.NoError(t, err)
				after := before.DeepCopy()
				meta.SetStatusCondition(&after.Status.Conditions, conditionThat("Progressing", metav1.ConditionTrue))
				_, err = c.PatchAddOnStatus(t.Context(), before, after)
				t.Log("status write:", err)
				live, err := c.GetAddOn(t.Context(), key)
				require.NoError(t, err)
				assert.True(t, meta.IsStatusConditionFalse(live.Status.Conditions, "Available"), "the agent said it is not available")
			})
		}
	}
}
