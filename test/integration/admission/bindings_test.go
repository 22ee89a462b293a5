package admission_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const setBindings = "managedclustersetbindings.spokelet.io"

func setBinding(name, set string) *clusterv1beta2.ManagedClusterSetBinding {
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	binding.Spec.ClusterSet = set
	return binding
}

func TestToBindASetTakesTheRightToIt(t *testing.T) {
	t.Parallel()
	may := user(t, "binder", rbacv1.PolicyRule{
		APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclustersetbindings"}, Verbs: []string{"create", "update", "get"},
	}, rbacv1.PolicyRule{
		APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclustersets/bind"},
		ResourceNames: []string{"blue"}, Verbs: []string{"create"},
	})
	blue := setBinding("blue", "blue")
	require.NoError(t, may.Create(t.Context(), blue))
	forbidden(t, may.Create(t.Context(), setBinding("red", "red")), setBindings, "may not bind ManagedClusterSet red to namespace default",
		"resourceNames: [red]")
	invalid(t, may.Create(t.Context(), setBinding("all", "blue")), setBindings, `call it "blue"`)

	// What does not choose a set takes no right to it.
	red := setBinding("red", "red")
	require.NoError(t, plane.Client.Create(t.Context(), red))
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error { // the hub manager writes its status
		if err := may.Get(t.Context(), client.ObjectKeyFromObject(red), red); err != nil {
			return err
		}
		red.Labels = map[string]string{"a": "b"}
		return may.Update(t.Context(), red)
	}))
}
