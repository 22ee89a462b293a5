package hubprocess

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
)

// A cache cannot be built with a kind that the hub does not serve: no program started on a hub with one version alone.
func TestACacheHasTheVersionOfAddOnsInUseAlone(t *testing.T) {
	scheme, err := NewScheme()
	require.NoError(t, err)
	for wire, want := range map[addonapi.Wire][]string{
		addonapi.WireAlpha: {"*v1.ManifestWork", "*v1alpha1.ManagedClusterAddOn", "*v1alpha1.ClusterManagementAddOn"},
		addonapi.WireBeta:  {"*v1.ManifestWork", "*v1beta1.ManagedClusterAddOn", "*v1beta1.ClusterManagementAddOn"},
	} {
		used, err := inWire(map[client.Object]cache.ByObject{
			&workv1.ManifestWork{}: {}, &addonv1alpha1.ManagedClusterAddOn{}: {}, &addonv1beta1.ManagedClusterAddOn{}: {},
			&addonv1alpha1.ClusterManagementAddOn{}: {}, &addonv1beta1.ClusterManagementAddOn{}: {},
		}, scheme, wire)
		require.NoError(t, err)
		var got []string
		for object := range used {
			got = append(got, fmt.Sprintf("%T", object))
		}
		assert.ElementsMatch(t, want, got)
	}
}
