package attacks_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// A condition with a time of the year 10000 in UTC could not be written again, and with it no condition of the hub: a
// denial would not be told, and a cluster could not be deleted.
func TestAnAgentWritesNoTimeThatTheHubCannotWriteAgain(t *testing.T) {
	const cluster, addOn = "instants", "instants-addon"
	as := who("the agent of " + cluster)
	defineAccess(t, addOn, cluster)
	for kind, own := range map[string]struct {
		version string
		key     client.ObjectKey
	}{
		"ManagedCluster":      {"cluster.open-cluster-management.io/v1", client.ObjectKey{Name: cluster}},
		"ManagedClusterAddOn": {"addon.open-cluster-management.io/v1alpha1", client.ObjectKey{Namespace: cluster, Name: addOn}},
	} {
		for _, instant := range []string{"9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59"} {
			var err error
			suite.Eventually(t, func() error { // The agent gets its right a moment later, and the hub manager may write in between.
				o := &unstructured.Unstructured{}
				o.SetAPIVersion(own.version)
				o.SetKind(kind)
				require.NoError(t, shared.admin.Get(t.Context(), own.key, o))
				conditions, _, failed := unstructured.NestedSlice(o.Object, "status", "conditions")
				require.NoError(t, failed)
				conditions = append(conditions, map[string]any{
					"type": "Any", "status": "True", "reason": "Any", "message": "", "lastTransitionTime": instant,
				})
				require.NoError(t, unstructured.SetNestedSlice(o.Object, conditions, "status", "conditions"))
				err = shared.clients[as].Status().Update(t.Context(), o)
				bounds := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "-bounds.spokelet.io")
				if err == nil || apierrors.IsInvalid(err) || bounds {
					return nil
				}
				return err
			})
			require.Error(t, err, "%s %s", kind, instant)
		}
	}
}
