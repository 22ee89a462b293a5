package install

import (
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// ownerKind is the kind of the owner of add-ons.
const ownerKind = "ClusterManagementAddOn"

// facts are the inputs of the decision about one add-on on one cluster.
type facts struct {
	now     time.Time
	cluster string
	// cma is nil when it does not exist.
	cma *addonv1beta1.ClusterManagementAddOn
	// addon is nil when it does not exist.
	addon *addonv1beta1.ManagedClusterAddOn
	// managed is the cluster; nil when it does not exist.
	managed *clusterv1.ManagedCluster
	// namespace is that of the cluster; nil when it does not exist.
	namespace *metav1.PartialObjectMetadata
	// placements are those of the install strategy, in its order.
	placements []placementFacts
}

// plan is the decision about one add-on on one cluster; at most one of create, update and remove is set.
type plan struct {
	create *addonv1beta1.ManagedClusterAddOn
	update *addonv1beta1.ManagedClusterAddOn
	remove bool
	// notReady is why a selected add-on is not created yet; an event starts the next pass.
	notReady error
	// blocked is why an unselected add-on is not uninstalled.
	blocked error
	// wake is when to check a blocked add-on again; zero when an event starts the next pass.
	wake time.Time
}

// decide returns the plan for one add-on on one cluster.
func decide(f facts) plan {
	cma := f.cma
	switch {
	case cma == nil || !cma.DeletionTimestamp.IsZero() || !addonapi.Managed(cma):
		return plan{}
	case f.addon != nil && !f.addon.DeletionTimestamp.IsZero():
		return plan{}
	case !addonapi.InstalledByPlacements(cma):
		return ensureOwner(f)
	}
	for _, p := range f.placements {
		if p.selects(f.cluster) {
			return install(f)
		}
	}
	return uninstall(f)
}

// install creates the add-on unless it exists or its cluster is not ready. An add-on that another manager installed for
// a placement gets our label, so that its placements can uninstall it.
func install(f facts) plan {
	if f.addon != nil {
		p := ensureOwner(f)
		if installedBy(f) == "" {
			return p
		}
		if p.update == nil {
			p.update = f.addon.DeepCopy()
		}
		metav1.SetMetaDataLabel(&p.update.ObjectMeta, names.LabelInstalledBy, names.InstalledByPlacement)
		return p
	}
	if err := unready(f); err != nil {
		return plan{notReady: err}
	}
	addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: f.cma.Name, Namespace: f.cluster,
		Labels: map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
	}}
	for key, value := range f.managed.Annotations {
		if strings.HasPrefix(key, names.AnnotationAddonPrefix) {
			metav1.SetMetaDataAnnotation(&addon.ObjectMeta, key, value)
		}
	}
	setOwner(addon, f.cma)
	return plan{create: addon}
}

// unready returns why no add-on can be created on the cluster now.
func unready(f facts) error {
	switch {
	case f.managed == nil:
		return fmt.Errorf("there is no cluster %s", f.cluster)
	case !f.managed.DeletionTimestamp.IsZero():
		return fmt.Errorf("cluster %s is being deleted", f.cluster)
	case f.namespace == nil:
		return fmt.Errorf("there is no namespace %s: the cluster is not accepted yet", f.cluster)
	case !f.namespace.DeletionTimestamp.IsZero():
		return fmt.Errorf("namespace %s is being deleted", f.cluster)
	}
	return nil
}

// uninstall deletes the add-on if this reconciler created it and it is certain that no Placement selects the cluster.
func uninstall(f facts) plan {
	if f.addon == nil {
		return plan{}
	}
	p := ensureOwner(f)
	if f.addon.Labels[names.LabelInstalledBy] != names.InstalledByPlacement {
		if manager := installedBy(f); manager != "" {
			p.blocked = fmt.Errorf("they were installed by %s before this hub manager looked after them, and no placement has "+
				"selected the cluster since; delete them, or label them %s=%s", manager, names.LabelInstalledBy,
				names.InstalledByPlacement)
		}
		return p
	}
	for _, placement := range f.placements {
		wake, err := placement.uncertain(f.now)
		p.wake = reconcile.Earliest(p.wake, wake)
		p.blocked = errors.Join(p.blocked, err)
	}
	if p.blocked != nil {
		return p
	}
	return plan{remove: true}
}

// ensureOwner sets the owner reference without which an add-on is not deployed.
func ensureOwner(f facts) plan {
	if f.addon == nil {
		return plan{}
	}
	after := f.addon.DeepCopy()
	if !setOwner(after, f.cma) {
		return plan{}
	}
	return plan{update: after}
}

// setOwner makes the ClusterManagementAddOn an owner of the add-on, and its controller unless it has another one. It
// reports whether that changed anything.
func setOwner(addon *addonv1beta1.ManagedClusterAddOn, cma *addonv1beta1.ClusterManagementAddOn) bool {
	yes := true
	want := metav1.OwnerReference{
		APIVersion: addonv1beta1.GroupVersion.String(), Kind: ownerKind, Name: cma.Name, UID: cma.UID,
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
	refs := make([]metav1.OwnerReference, 0, len(addon.OwnerReferences)+1)
	same := false
	for _, ref := range addon.OwnerReferences {
		switch {
		case isOwnerReference(ref, cma.Name):
			same = same || equalRefs(ref, want)
			continue
		case ref.Controller != nil && *ref.Controller:
			want.Controller = nil
		}
		refs = append(refs, ref)
	}
	if same && len(refs)+1 == len(addon.OwnerReferences) {
		return false
	}
	refs = append(refs, want)
	addon.OwnerReferences = refs
	return true
}

// isOwnerReference reports whether a reference names the ClusterManagementAddOn, in any API version and with any UID.
func isOwnerReference(ref metav1.OwnerReference, name string) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == addonv1beta1.GroupName && ref.Kind == ownerKind && ref.Name == name
}

func equalRefs(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.UID == b.UID && isTrue(a.Controller) == isTrue(b.Controller) &&
		isTrue(a.BlockOwnerDeletion) == isTrue(b.BlockOwnerDeletion)
}

func isTrue(b *bool) bool { return b != nil && *b }
