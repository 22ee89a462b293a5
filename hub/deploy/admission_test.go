package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Shows: hub/admission-recorded
func TestAnAdmissionIsRecordedBeforeAnyWorkIsWritten(t *testing.T) {
	tests := map[string]struct {
		admitted bool
		verb     reconcile.Verb
		want     bool
	}{
		"an admission that the status does not show": {admitted: true, verb: reconcile.Patch, want: true},
		"the first work":              {admitted: true, verb: reconcile.Create, want: true},
		"no work is written":          {admitted: true, verb: reconcile.Keep},
		"the status shows it already": {verb: reconcile.Patch},
	}
	recorded := fixture.AddOn("c1", fixture.Has(fixture.DeploymentConfig("own"), "hash")).Status.ConfigReferences
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			require.NoError(t, addonv1alpha1.Install(scheme))
			object := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a", UID: "u"}}
			var c client.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).
				WithStatusSubresource(object).Build()
			r := &Reconciler{AddOns: addonapi.Client{Client: c}}
			before, err := r.AddOns.GetAddOn(t.Context(), client.ObjectKeyFromObject(object))
			require.NoError(t, err)
			f := facts{addOn: before, configuration: addon.Configuration{
				Admitted: tc.admitted,
				Record: func(after *addonv1beta1.ManagedClusterAddOn, _ addon.Progress) {
					after.Status.ConfigReferences = recorded
				},
			}}
			after, err := r.recordAdmission(t.Context(), f, plan{works: []workStep{{Verb: tc.verb}}})
			require.NoError(t, err)
			stored, err := r.AddOns.GetAddOn(t.Context(), client.ObjectKeyFromObject(object))
			require.NoError(t, err)
			assert.Equal(t, tc.want, len(stored.Status.ConfigReferences) == 1)
			assert.Equal(t, stored.ResourceVersion, after.ResourceVersion, "more of the status can be written")
		})
	}
}
