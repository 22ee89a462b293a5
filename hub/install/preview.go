package install

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// Preview returns an add-on on a cluster as a pass leaves it; nil when nobody installs it. addOn is the add-on as it
// exists, or nil; selected reports whether a placement of its install strategy selects the cluster.
func Preview(
	cma *addonv1beta1.ClusterManagementAddOn, cluster *clusterv1.ManagedCluster,
	addOn *addonv1beta1.ManagedClusterAddOn, selected bool,
) (*addonv1beta1.ManagedClusterAddOn, error) {
	f := facts{
		cluster: cluster.Name, cma: cma, managed: cluster, selected: selected,
		namespace: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{names.LabelClusterName: cluster.Name},
		}},
	}
	if addOn != nil {
		f.addon = addOn
	}
	p := decide(f)
	switch {
	case p.notReady != nil:
		return nil, p.notReady
	case p.create != nil:
		return p.create, nil
	case p.update != nil:
		return previewed(p.update)
	}
	return addOn, nil
}

func previewed(wire client.Object) (*addonv1beta1.ManagedClusterAddOn, error) {
	addOn, err := addonapi.AddOn(wire)
	if err != nil {
		return nil, fmt.Errorf("converting add-on %s: %w", client.ObjectKeyFromObject(wire), err)
	}
	return addOn, nil
}
