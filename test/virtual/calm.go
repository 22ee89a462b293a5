package virtual

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// calm is everything that there is when all is quiet.
type calm struct {
	clusters map[string]*clusterv1.ManagedCluster
	addOns   map[one]*addonv1alpha1.ManagedClusterAddOn
	works    map[string]int
}

// look reads the hub.
func (w *World) look() (calm, error) {
	seen := calm{
		clusters: map[string]*clusterv1.ManagedCluster{}, addOns: map[one]*addonv1alpha1.ManagedClusterAddOn{},
		works: map[string]int{},
	}
	var clusters clusterv1.ManagedClusterList
	var addOns addonv1alpha1.ManagedClusterAddOnList
	var works workv1.ManifestWorkList
	if err := w.admin.List(w.ctx, &clusters); err != nil {
		return seen, fmt.Errorf("listing clusters: %w", err)
	}
	if err := w.admin.List(w.ctx, &addOns); err != nil {
		return seen, fmt.Errorf("listing add-ons: %w", err)
	}
	if err := w.admin.List(w.ctx, &works); err != nil {
		return seen, fmt.Errorf("listing works: %w", err)
	}
	for i := range clusters.Items {
		seen.clusters[clusters.Items[i].Name] = &clusters.Items[i]
	}
	for i := range addOns.Items {
		seen.addOns[one{addOns.Items[i].Namespace, addOns.Items[i].Name}] = &addOns.Items[i]
	}
	for i := range works.Items {
		seen.works[works.Items[i].Namespace]++
	}
	return seen, nil
}

// differences returns what is not as people asked for: images are the images of the add-ons.
func (w *World) differences(images map[string]string) ([]string, error) {
	seen, err := w.look()
	if err != nil {
		return nil, err
	}
	var all []string
	tell := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for addOn := range images {
		if text, err := w.undecided(addOn); err != nil || text != "" {
			tell("Placement %s: %s (%v)", addOn, text, err)
		}
	}
	for _, c := range w.clusters {
		cluster := seen.clusters[c.Name]
		if cluster == nil {
			tell("%s has not joined", c.Name)
			continue
		}
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
			tell("%s is not available: %v", c.Name, cluster.Status.Conditions)
		}
		wanted := 0
		for addOn, image := range images {
			o := one{c.Name, addOn}
			selected := w.judge.want(o)
			if selected {
				wanted++
			}
			if text, err := w.differs(c, o, selected, image, seen.addOns[o]); err != nil || text != "" {
				tell("add-on %s of %s: %s (%v)", addOn, c.Name, text, err)
			}
		}
		if seen.works[c.Name] != wanted {
			tell("%s has %d works for %d add-ons", c.Name, seen.works[c.Name], wanted)
		}
	}
	return all, nil
}

// undecided returns what is wrong with the status of the Placement of an add-on; empty when nothing is.
func (w *World) undecided(addOn string) (string, error) {
	var placement clusterv1beta1.Placement
	if err := w.admin.Get(w.ctx, types.NamespacedName{Namespace: space, Name: addOn}, &placement); err != nil {
		return "", fmt.Errorf("reading the Placement of %s: %w", addOn, err)
	}
	wanted := 0
	for _, c := range w.clusters {
		if w.judge.want(one{c.Name, addOn}) {
			wanted++
		}
	}
	if said := int(placement.Status.NumberOfSelectedClusters); said != wanted {
		return fmt.Sprintf("it says that it selects %d clusters, and %d are wanted", said, wanted), nil
	}
	return "", nil
}

// differs returns what is wrong with an add-on; empty when nothing is.
func (w *World) differs(
	c *Cluster, o one, selected bool, image string, addOn *addonv1alpha1.ManagedClusterAddOn,
) (string, error) {
	key := types.NamespacedName{Namespace: names.NamespaceAgentAddon, Name: o.addOn}
	found, err := reconcile.Get(w.ctx, c.admin, key, &appsv1.Deployment{})
	if err != nil {
		return "", err
	}
	switch {
	case !selected && addOn != nil:
		return "it is there and was taken away", nil
	case !selected && found != nil:
		return "its Deployment is left", nil
	case !selected:
		return "", nil
	case addOn == nil:
		return "it does not exist", nil
	case !meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable):
		return fmt.Sprintf("it is not available: %v", addOn.Status.Conditions), nil
	case found == nil:
		return "it has no Deployment", nil
	case imageOf(found) != image:
		return fmt.Sprintf("it has image %s and not %s: %v", imageOf(found), image, addOn.Status.Conditions), nil
	}
	key.Name = credentialOf(o.addOn)
	credential, err := reconcile.Get(w.ctx, c.admin, key, &corev1.Secret{})
	if err == nil && (credential == nil || len(credential.Data[corev1.TLSCertKey]) == 0) {
		return "it has no credential", nil
	}
	return "", err
}
