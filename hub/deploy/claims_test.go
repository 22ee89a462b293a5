package deploy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// The claims of a cluster are within what the policy of the hub lets an agent report (512 claims of 65536 characters in
// all), and have more bytes than the cache keeps. The cache is not behind; an add-on loses an object in an upgrade, and
// a role.
//
// Shows: hub/removed-when-confirmed
func TestAnUpgradeThatTakesAnObjectReachesAClusterWithManyClaims(t *testing.T) {
	for name, value := range map[string]string{
		"control: claims that the cache keeps":   strings.Repeat("a", 1000),
		"claims of which the cache keeps a part": strings.Repeat("日", 1000),
	} {
		t.Run(name, func(t *testing.T) { takesInUpgrade(t, value) })
	}
}

func takesInUpgrade(t *testing.T, value string) {
	t.Helper()
	f := factsOf(configMap("stays", 1), configMap("goes", 1))
	f.cluster.UID = "u"
	characters := 0
	for i := range 40 {
		claim := clusterv1.ManagedClusterClaim{Name: fmt.Sprintf("c%03d", i), Value: value}
		characters += len(claim.Name) + len([]rune(claim.Value))
		f.cluster.Status.ClusterClaims = append(f.cluster.Status.ClusterClaims, claim)
	}
	require.LessOrEqual(t, characters, 65536, "the policy agent-status-sizes.spokelet.io accepts it")
	f, _ = simulate(t, f)
	require.Len(t, f.works, 1)
	liveCluster := f.cluster.DeepCopy()

	// What the cache of the hub manager has of the very same version.
	trimmed, err := (&hubprocess.Trims{}).Cluster(f.cluster.DeepCopy())
	require.NoError(t, err)
	cached, is := trimmed.(*clusterv1.ManagedCluster)
	require.True(t, is)
	f.cluster = cached

	f.rendering.Objects = f.rendering.Objects[:1]
	obsolete := roleBinding("obsolete", "c1", "a")
	f.obsolete = []*rbacv1.RoleBinding{obsolete}
	for _, work := range f.works {
		work.UID = "w"
	}
	c := fake.NewClientBuilder().WithScheme(hubScheme(t)).
		WithObjects(addonapi.AddOnToAlpha(f.addOn), liveCluster, f.works[0].DeepCopy(), obsolete.DeepCopy()).
		WithStatusSubresource(&addonv1alpha1.ManagedClusterAddOn{}).
		WithIndex(&clusterv1.ManagedCluster{}, metav1.ObjectNameField, nameOf).Build()
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(f.works[0]), f.works[0]))
	alpha := &addonv1alpha1.ManagedClusterAddOn{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(f.addOn), alpha))
	f.addOn = addonapi.AddOnToBeta(alpha)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(liveCluster), liveCluster))
	f.cluster.ResourceVersion = liveCluster.ResourceVersion
	r := &Reconciler{Client: c, Bindings: c, Live: c, AddOns: addonapi.Client{Client: c}}

	result, err := r.deploy(t.Context(), reconcile.Request("c1", "a")[0], f)
	t.Logf("pass: %+v, %v", result, err)
	require.NoError(t, err)
	after := &workv1.ManifestWork{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(f.works[0]), after))
	var have []string
	for _, s := range works.ReadAll(after) {
		have = append(have, s.Name)
	}
	assert.Equal(t, []string{"stays"}, have, "nothing else will start a pass: the result is %+v", result)
	assert.Error(t, c.Get(t.Context(), client.ObjectKeyFromObject(obsolete), &rbacv1.RoleBinding{}),
		"the agent keeps a role that the add-on does not ask for any more")
}
