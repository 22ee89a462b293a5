package work_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAManifestWithATypingErrorKeepsItsObject breaks manifests whose objects exist.
//
// Shows: work/broken-manifest-keeps
func TestAManifestWithATypingErrorKeepsItsObject(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	const deployment = "{apiVersion: %s, kind: Deployment, metadata: {name: web, namespace: %s}, spec: {" +
		"selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}"
	whole := e.manifests(e.configMap("web", nil), fmt.Sprintf(deployment, "apps/v1", e.cluster), e.configMap("dropped", nil))
	w := e.work("w")
	w.Spec.Workload.Manifests = whole
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionTrue)
	uid := func(o client.Object) types.UID {
		if !e.get(o, e.cluster, "web") || !o.GetDeletionTimestamp().IsZero() {
			return ""
		}
		return o.GetUID()
	}
	configMap, web := uid(&corev1.ConfigMap{}), uid(&appsv1.Deployment{})
	require.NotEmpty(t, configMap)
	require.NotEmpty(t, web)
	for sentence, broken := range map[string][]workv1.Manifest{
		"a manifest without its namespace": e.manifests("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}", fmt.Sprintf(deployment, "apps/v1", "''")),
		"one with another group":           e.manifests("{apiVersion: core/v1, kind: ConfigMap, metadata: {name: web, namespace: "+e.cluster+"}}", fmt.Sprintf(deployment, "app/v1", e.cluster)),
		"one without its version":          e.manifests("{apiVersion: v11, kind: ConfigMap, metadata: {name: web, namespace: "+e.cluster+"}}", fmt.Sprintf(deployment, "apps", e.cluster)),
	} {
		e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = whole })
		e.is(w, workv1.WorkApplied, metav1.ConditionTrue)
		e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = broken })
		e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
		e.eventually("what is surely meant no more goes", func() bool {
			return !e.get(&corev1.ConfigMap{}, e.cluster, "dropped")
		})
		e.quiet(a)
		assert.Equal(t, configMap, uid(&corev1.ConfigMap{}), sentence)
		assert.Equal(t, web, uid(&appsv1.Deployment{}), sentence)
		assert.Equal(t, []string{"configmaps/web", "deployments/web"}, appliedNames(e.applied()), sentence)
	}
	require.NoError(t, e.Delete(t.Context(), w))
	e.gone("w")
	assert.Empty(t, uid(&corev1.ConfigMap{}), "the deletion of the work deletes it all the same")
}
