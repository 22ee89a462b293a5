package work_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// hostingAddon is the annotation that tells whose a resource of a hosted add-on is.
const hostingAddon = "addon.open-cluster-management.io/hosting-addon"

// claim returns a work as OCM's proposals for hosted add-ons have it: it takes a namespace only if nobody has it, and a
// condition tells whose it is.
func (e *env) claim(name, namespace string) *workv1.ManifestWork {
	e.Helper()
	w := e.work(name, fmt.Sprintf(`{apiVersion: v1, kind: Namespace, metadata: {name: %s, annotations: {%s: %s/hello}}}`,
		namespace, hostingAddon, e.cluster))
	id := workv1.ResourceIdentifier{Resource: "namespaces", Name: namespace}
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: id,
		UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly},
		FeedbackRules: []workv1.FeedbackRule{{
			Type:      workv1.JSONPathsType,
			JsonPaths: []workv1.JsonPath{{Name: "owner", Path: `.metadata.annotations.addon\.open-cluster-management\.io/hosting-addon`}},
		}},
		ConditionRules: []workv1.ConditionRule{celRule("HostingResourceOwned", fmt.Sprintf(
			"has(object.metadata.annotations) && '%[1]s' in object.metadata.annotations && "+
				"object.metadata.annotations['%[1]s'] == '%[2]s/hello'", hostingAddon, e.cluster))},
	}}
	w.Spec.DeleteOption = &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
		SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{{
			Resource: "namespaces", Name: namespace,
		}}},
	}
	return w
}

// TestAClaimOfANamespace claims a namespace that does not exist and keeps it, and one that another add-on has.
// Shows: work/claim
func TestAClaimOfANamespace(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	free, taken := e.cluster+"-free", e.cluster+"-taken"
	e.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: taken, Annotations: map[string]string{hostingAddon: "other/hello"},
	}})
	mine, theirs := e.claim("mine", free), e.claim("theirs", taken)
	e.create(mine)
	e.create(theirs)
	e.says(mine, 0, "HostingResourceOwned", metav1.ConditionTrue, "")
	e.says(theirs, 0, "HostingResourceOwned", metav1.ConditionFalse, "")
	for w, owner := range map[*workv1.ManifestWork]string{mine: e.cluster + "/hello", theirs: "other/hello"} {
		e.is(w, workv1.WorkApplied, metav1.ConditionTrue)
		values := w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values
		require.Len(t, values, 1)
		assert.Equal(t, owner, *values[0].Value.String)
	}
	var live corev1.Namespace
	require.True(t, e.get(&live, "", taken))
	assert.Equal(t, "other/hello", live.Annotations[hostingAddon], "what another add-on has is not touched")
	assert.Empty(t, live.OwnerReferences)

	e.edit(mine, func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = nil
		w.Spec.ManifestConfigs[0].UpdateStrategy = &workv1.UpdateStrategy{
			Type:            workv1.UpdateStrategyTypeServerSideApply,
			ServerSideApply: &workv1.ServerSideApplyConfig{FieldManager: "work-agent-hello"},
		}
	})
	e.says(mine, 0, "HostingResourceOwned", metav1.ConditionTrue, "")
	e.settled(mine)
	require.True(t, e.get(&live, "", free))
	assert.Len(t, live.OwnerReferences, 1, "a claim that was granted is kept, and goes with its work")

	require.NoError(t, e.Delete(t.Context(), theirs))
	require.NoError(t, e.Delete(t.Context(), mine))
	e.eventually("the claimed namespace goes", func() bool {
		return !e.get(&live, "", free) || !live.DeletionTimestamp.IsZero()
	})
	e.eventually("both works go", func() bool { return !e.get(theirs, e.cluster, "theirs") })
	require.True(t, e.get(&live, "", taken))
	assert.True(t, live.DeletionTimestamp.IsZero())
	assert.Equal(t, "other/hello", live.Annotations[hostingAddon])
}
