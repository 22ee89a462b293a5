package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// definition is the manifest of a kind that only one content of an add-on has, in flow style.
const definition = `- {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: ` +
	`{name: widgets.undo.example.com}, spec: {group: undo.example.com, scope: Cluster, names: {kind: Widget, ` +
	`plural: widgets}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`

// kindsOf are the kinds of the manifests of a work, sorted.
func kindsOf(t *testing.T, work *workv1.ManifestWork) []string {
	t.Helper()
	var kinds []string
	for i := range work.Spec.Workload.Manifests {
		kinds = append(kinds, decode(t, &work.Spec.Workload.Manifests[i]).GetKind())
	}
	slices.Sort(kinds)
	return kinds
}

// content waits until the policy of the add-on names another content than one, and knows so many that completed, and
// returns its name.
func (f fixture) content(t *testing.T, before string, completed int) (content string) {
	t.Helper()
	suite.Eventually(t, suite.Checks(func(c assert.TestingT) {
		policy := &policies.AddOnPolicy{}
		if assert.NoError(c, plane.Client.Get(t.Context(), client.ObjectKey{Name: f.addOn}, policy)) &&
			assert.Len(c, policy.Status.Placements, 1) {
			content = policy.Status.Placements[0].Content
			assert.NotEqual(c, before, content)
			assert.Len(c, policy.Status.Placements[0].Completed, completed)
		}
	}))
	return content
}

// undoes lets a person undo a content, or end that.
func (f fixture) undoes(t *testing.T, contents ...string) {
	t.Helper()
	suite.Eventually(t, suite.True("the policy must be written", func() bool {
		policy := &policies.AddOnPolicy{}
		if err := plane.Client.Get(t.Context(), client.ObjectKey{Name: f.addOn}, policy); err != nil {
			return false
		}
		policy.Spec.Undo = contents
		return plane.Client.Update(t.Context(), policy) == nil
	}))
}

// The hub manager is stopped in the middle of the undo, so the test runs alone.
//
// Shows: policies/undo-definition, policies/undo-hook, policies/undo-restart
func TestAnUndoKeepsDefinitionsAndRunsNoHook(t *testing.T) {
	f := install(t, "undone")
	require.NoError(t, plane.Client.Create(t.Context(), &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: f.addOn}}))
	f.report(t, 1)
	f.condition(t, "Progressing", metav1.ConditionFalse, "Completed")
	former := kindsOf(t, f.work(t, nil))
	first := f.content(t, "", 1)

	more := []string{"manifests:\n", "manifests:\n        " + definition + "\n        " +
		strings.ReplaceAll(hook("Job", "clean", mark), "ADDON", f.addOn) + "\n"}
	f.apply(t, more...)
	f.work(t, func(w *workv1.ManifestWork) bool { return len(w.Spec.Workload.Manifests) == len(former)+1 })
	f.report(t, 1)
	f.condition(t, "Progressing", metav1.ConditionFalse, "Completed")
	second := f.content(t, first, 2)

	program.Stop()
	f.undoes(t, second)
	program.Start()
	suite.Eventually(t, suite.Checks(func(c assert.TestingT) {
		configured := meta.FindStatusCondition(f.get(t.Context()).Status.Conditions, "Configured")
		if assert.NotNil(c, configured) {
			assert.Equal(c, "Configurations configured: content "+second+" was undone", configured.Message)
		}
	}))
	program.Stop() // It may have written the work of before, or not yet.
	program.Start()
	f.annotate(t, "touched", "yes")
	work := f.work(t, func(w *workv1.ManifestWork) bool {
		return len(f.get(t.Context()).Finalizers) == 0 && w.Annotations["open-cluster-management.io/config-spec-hash"] != ""
	})
	f.report(t, 1)
	f.condition(t, "Progressing", metav1.ConditionFalse, "Completed")
	f.atRest(t)
	assert.Equal(t, append([]string{"CustomResourceDefinition"}, former...), kindsOf(t, f.work(t, nil)),
		"what only the undone content defines stays")
	assert.NotNil(t, work)
	hooks := &workv1.ManifestWork{}
	assert.True(t, apierrors.IsNotFound(plane.Client.Get(t.Context(), f.hookKey(), hooks)), "no hook runs")

	writes := f.writes(t)
	f.annotate(t, "touched", "again")
	f.atRest(t)
	assert.Equal(t, writes, f.writes(t), "an undo that is done writes nothing more")

	f.undoes(t) // A person takes it back: the cluster gets what was undone.
	f.condition(t, "Progressing", metav1.ConditionTrue, "Progressing")
	f.report(t, 1)
	f.condition(t, "Progressing", metav1.ConditionFalse, "Completed")
	assert.NotEmpty(t, f.get(t.Context()).Finalizers, "its hook is to run when the add-on goes")
}
