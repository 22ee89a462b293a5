package objects_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/objectwatch"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: hub/watched-one-by-one
func TestAnObjectIsFollowedWhileItIsWanted(t *testing.T) {
	w, namespace := watch(t), plane.Namespace(t, "wanted")
	w.permit(t, "", "configmaps", "a", "b")
	a, b := configMap(namespace, "a"), configMap(namespace, "b")
	writeConfigMap(t, a, "1")
	writeConfigMap(t, configMap(namespace, "other"), "1")
	w.Want("one", []objectwatch.Ref{a, b})
	w.Want("two", []objectwatch.Ref{a})
	w.await(t, a, "v1/1")
	w.await(t, b, "missing")
	w.awaitWatches(t, "a", "b")
	assert.Empty(t, w.Get(a).Object.GetManagedFields())

	writeConfigMap(t, a, "2")
	writeConfigMap(t, b, "3")
	w.await(t, a, "v1/2")
	w.await(t, b, "v1/3")
	require.NoError(t, plane.Client.Delete(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b"},
	}))
	w.await(t, b, "missing")

	w.Want("one", nil)
	w.awaitWatches(t, "a")
	w.Want("two", nil)
	w.awaitWatches(t)
}

// Shows: hub/kind-later
func TestAPermissionMayComeLater(t *testing.T) {
	w, namespace := watch(t), plane.Namespace(t, "permitted")
	a, b := configMap(namespace, "a"), configMap(namespace, "b")
	writeConfigMap(t, a, "1")
	w.Want("one", []objectwatch.Ref{a, b})
	w.await(t, a, "Forbidden")
	w.await(t, b, "Forbidden")
	want := fmt.Sprintf(`configmaps %s/a cannot be read: configmaps "a" is forbidden: User %q cannot list resource `+
		`"configmaps" in API group "" in the namespace %q; grant the verbs list and watch on resource "configmaps" in the `+
		`core API group`, namespace, w.user, namespace)
	suite.Eventually(t, func() error {
		if got := w.Get(a).Cause.Message; got != want {
			return fmt.Errorf("the message is %q and not yet %q", got, want)
		}
		return nil
	})

	w.permit(t, "", "configmaps", "a")
	w.await(t, a, "v1/1")
	assert.Equal(t, "Forbidden", w.value(b))
	w.awaitWatches(t, "a")
	w.permit(t, "", "configmaps")
	w.await(t, b, "missing")
	w.awaitWatches(t, "a", "b")
}

// Shows: hub/kind-later
func TestADefinitionMayComeLaterAndGo(t *testing.T) {
	w, group := watch(t), suite.UniqueName("later")+".example.com"
	w.permit(t, group, "widgets")
	ref := objectwatch.Ref{Group: group, Resource: "widgets", Name: "a"}
	w.Want("one", []objectwatch.Ref{ref, {Group: group, Resource: "widgets", Namespace: "ns", Name: "a"}})
	w.await(t, ref, "NotServed")
	assert.Equal(t, fmt.Sprintf("widgets.%s a cannot be read, because the API server serves no resource %q in API group "+
		"%s; install its CustomResourceDefinition or correct the reference", group, "widgets", group),
		w.Get(ref).Cause.Message)

	install := func(versions ...string) {
		t.Helper()
		require.NoError(t, plane.Client.Create(t.Context(), definition(group, versions...)))
		version := versions[len(versions)-1]
		suite.Eventually(t, func() error {
			return plane.Client.Create(t.Context(), widget(group, version, "a", version))
		})
	}
	install("v1alpha1")
	w.await(t, ref, "v1alpha1/v1alpha1")
	w.await(t, objectwatch.Ref{Group: group, Resource: "widgets", Namespace: "ns", Name: "a"}, "WrongScope")
	w.awaitWatches(t, "a")
	settled := w.discovered()
	require.NoError(t, plane.Client.Update(t.Context(), stored(t, widget(group, "v1alpha1", "a", "changed"))))
	w.await(t, ref, "v1alpha1/changed")
	assert.Equal(t, settled, w.discovered(), "no discovery while all kinds are served")

	require.NoError(t, plane.Client.Delete(t.Context(), definition(group)))
	w.await(t, ref, "NotServed")
	w.awaitWatches(t)
	suite.Eventually(t, func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(definition(group)), crd); err == nil {
			return fmt.Errorf("the definition is still there: %v", crd.Status.Conditions)
		}
		return nil
	})
	install("v1beta1")
	w.await(t, ref, "v1beta1/v1beta1")
	w.awaitWatches(t, "a")
}

func (w *watched) discovered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.discoveries
}

// stored returns an object with the resource version that the API server has.
func stored[T client.Object](t *testing.T, object T) T {
	t.Helper()
	live, ok := object.DeepCopyObject().(T)
	require.True(t, ok)
	require.NoError(t, plane.Client.Get(t.Context(), client.ObjectKeyFromObject(object), live))
	object.SetResourceVersion(live.GetResourceVersion())
	return object
}

func TestARestartOfTheAPIServerLosesNothing(t *testing.T) {
	w, namespace := watch(t), plane.Namespace(t, "restarted")
	w.permit(t, "", "configmaps")
	a, b := configMap(namespace, "a"), configMap(namespace, "b")
	writeConfigMap(t, a, "1")
	w.Want("one", []objectwatch.Ref{a, b})
	w.await(t, a, "v1/1")
	w.await(t, b, "missing")
	w.awaitWatches(t, "a", "b")
	plane.KillAPIServer()
	w.awaitWatches(t)
	c := objectwatch.Ref{Group: "later.example.com", Resource: "others", Name: "c"}
	w.Want("two", []objectwatch.Ref{c})
	w.await(t, c, "Unavailable")
	assert.Equal(t, "v1/1", w.value(a), "what was read remains")
	assert.Equal(t, "missing", w.value(b))
	require.NoError(t, plane.StartAPIServer(t.Context()))
	writeConfigMap(t, a, "2")
	writeConfigMap(t, b, "3")
	w.await(t, a, "v1/2")
	w.await(t, b, "v1/3")
	w.await(t, c, "NotServed")
	w.awaitWatches(t, "a", "b")
}
