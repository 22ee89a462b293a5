package hubcluster_test

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/internal/names"
)

func TestWhatHappenedWhileTheHubManagerWasAwayIsCaughtUp(t *testing.T) {
	createLabelled(t, "away-gone", map[string]string{"away": "y"})
	createLabelled(t, "away-late", nil)
	createPlacement(t, "away", nil, predicate(map[string]string{"away": "y"}))
	createAddon(t, "away", nil, "away")
	expectInstalled(t, "away", "away-gone")
	expectCondition(t, "away-gone", clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue,
		"HubClusterAdminAccepted")
	manager.Stop()

	// A cluster vanishes with its finalizer, which leaves its access behind, and another one is selected.
	require.NoError(t, plane.Client.Delete(t.Context(), getCluster(t, "away-gone")))
	release(t, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: "away-gone"})
	patch(t, getCluster(t, "away-late"), `{"metadata":{"labels":{"away":"y"}}}`)
	require.NoError(t, plane.Client.Get(t.Context(), binding("away-gone", "work"), &rbacv1.RoleBinding{}))

	manager.Start()
	gone(t, &rbacv1.RoleBinding{}, binding("away-gone", "work"))
	gone(t, &rbacv1.ClusterRole{}, client.ObjectKey{Name: "open-cluster-management:managedcluster:away-gone"})
	expectInstalled(t, "away", "away-late")
}

func TestDefinitionsAreInstalledAgainWithoutHarm(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	c, err := client.New(plane.Admin(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	key := client.ObjectKey{Name: "managedclustersets.cluster.open-cluster-management.io"}
	var before, after apiextensionsv1.CustomResourceDefinition
	ctx := ctrl.LoggerInto(t.Context(), logr.Discard())
	identity, err := plane.ServiceAccount(t.Context(), names.NamespaceHub, names.ServiceAccountManager)
	require.NoError(t, err)

	require.NoError(t, c.Get(t.Context(), key, &before))
	_, err = hub.InstallCRDs(ctx, identity, nil)
	require.NoError(t, err)
	require.NoError(t, c.Get(t.Context(), key, &after))
	assert.Equal(t, before.ResourceVersion, after.ResourceVersion, "what is there already is not written")

	after.Spec.Versions[0].AdditionalPrinterColumns = nil
	require.NoError(t, c.Update(t.Context(), &after))
	found, err := hub.InstallCRDs(ctx, identity, nil)
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "DefinitionKeptByOthers", found[0].Reason)
	require.NoError(t, c.Get(t.Context(), key, &before))
	assert.Equal(t, after.ResourceVersion, before.ResourceVersion, "what somebody else keeps is left to them")
}
