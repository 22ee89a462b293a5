package deploy_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// returned is an add-on that returned from a content with a CustomResourceDefinition, which its works have still.
func returned(t *testing.T, name string) (f fixture, more []string) {
	t.Helper()
	f = install(t, name)
	require.NoError(t, plane.Client.Create(t.Context(), &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: f.addOn}}))
	f.report(t, 1)
	f.condition(t, "Progressing", metav1.ConditionFalse, "Completed")
	former := kindsOf(t, f.work(t, nil))
	first := f.content(t, "", 1)
	more = []string{"manifests:\n", "manifests:\n        " + definition + "\n"}
	f.apply(t, more...)
	f.work(t, func(w *workv1.ManifestWork) bool { return len(w.Spec.Workload.Manifests) == len(former)+1 })
	f.report(t, 1)
	f.condition(t, "Progressing", metav1.ConditionFalse, "Completed")
	second := f.content(t, first, 2)
	f.undoes(t, second)
	suite.Eventually(t, suite.Checks(func(c assert.TestingT) {
		configured := meta.FindStatusCondition(f.get(t.Context()).Status.Conditions, "Configured")
		if assert.NotNil(c, configured) {
			assert.Equal(c, "Configurations configured: content "+second+" was undone", configured.Message)
		}
	}))
	f.report(t, 1)
	f.condition(t, "Progressing", metav1.ConditionFalse, "Completed")
	f.atRest(t)
	require.True(t, f.defines(t), "the control: what only the undone content defines stays")
	return f, more
}

func (f fixture) defines(t *testing.T) bool {
	t.Helper()
	return slices.Contains(kindsOf(t, f.work(t, nil)), "CustomResourceDefinition")
}

// definesFurther has another pass of the add-on, and looks whether the works keep the definition all the same.
func (f fixture) definesFurther(t *testing.T) {
	t.Helper()
	for _, value := range []string{"once", "again"} {
		f.annotate(t, "touched", value)
		f.atRest(t)
		require.True(t, f.defines(t), "the CustomResourceDefinition is taken from the work, so that all objects of its kind "+
			"are deleted: %v", f.get(t.Context()).Status.Conditions)
	}
}

// The next content, which repairs the one that was undone and has the definition, too, waits (here for a pause; as well
// for its turn, an approval or a window). Until it begins, the cluster keeps what it has.
func TestTheDefinitionStaysWhileTheNextContentWaits(t *testing.T) {
	t.Parallel()
	f, more := returned(t, "defnext")
	suite.Eventually(t, suite.True("the policy must be written", func() bool {
		policy := &policies.AddOnPolicy{}
		if err := plane.Client.Get(t.Context(), client.ObjectKey{Name: f.addOn}, policy); err != nil {
			return false
		}
		policy.Spec.Paused = &policies.Pause{Reason: "not yet"}
		return plane.Client.Update(t.Context(), policy) == nil
	}))
	f.atRest(t)
	f.apply(t, append(more, "agent:v1", "agent:v3")...)
	suite.Eventually(t, suite.Checks(func(c assert.TestingT) {
		configured := meta.FindStatusCondition(f.get(t.Context()).Status.Conditions, "Configured")
		if assert.NotNil(c, configured) {
			assert.Contains(c, configured.Message, "is paused: not yet")
		}
	}))
	f.definesFurther(t)
}

// A person deletes the template with the content that was undone.
func TestTheDefinitionStaysWhenTheTemplateThatWasUndoneIsDeleted(t *testing.T) {
	t.Parallel()
	f, _ := returned(t, "defgone")
	require.NoError(t, plane.Client.Delete(t.Context(), &addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: f.addOn}}))
	suite.Eventually(t, suite.Checks(func(c assert.TestingT) {
		configured := meta.FindStatusCondition(f.get(t.Context()).Status.Conditions, "Configured")
		if assert.NotNil(c, configured) {
			assert.Contains(c, configured.Message, "does not exist")
		}
	}))
	f.definesFurther(t)
}
