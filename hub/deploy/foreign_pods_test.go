package deploy

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
)

// The works of an add-on with a manager of its own are not rendered here, and its rollout goes by their pods all the
// same: a bad image does not count as completed.
//
// Shows: hub/rolls-out-pods
func TestPodsOfAnAddOnWithAManagerOfItsOwnRollOut(t *testing.T) {
	count := func(name string, n int64) workv1.FeedbackValue {
		return workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.Integer, Integer: &n}}
	}
	work := &workv1.ManifestWork{}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"agent","namespace":"ns"},"spec":{"replicas":1}}`)}}}
	work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{
		ResourceMeta:    workv1.ManifestResourceMeta{Group: "apps", Resource: "deployments", Namespace: "ns", Name: "agent"},
		StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{count("Replicas", 2), count("ReadyReplicas", 1)}},
	}}
	var got addon.Progress
	f := facts{addOn: &addonv1beta1.ManagedClusterAddOn{}, works: []*workv1.ManifestWork{work}}
	f.configuration.Record = func(_ *addonv1beta1.ManagedClusterAddOn, p addon.Progress) { got = p }
	f.record(f.addOn.DeepCopy(), f.works, false)
	require.Equal(t, []string{"Deployment ns/agent has 1 ready of 2 pods"}, got.RollingOut)
}
