package install

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
)

// ownerKind is the kind of the owner of add-ons.
const ownerKind = "ClusterManagementAddOn"

// facts are the inputs of the decision about one add-on on one cluster. Objects belong to the cache and must not be
// changed.
type facts struct {
	now     time.Time
	cluster string
	// owners is the version in which owner references name add-ons.
	owners addonapi.Wire
	// cma is the ClusterManagementAddOn in the version of the wire; nil when it does not exist.
	cma client.Object
	// addon is the ManagedClusterAddOn in the version of the wire; nil when it does not exist.
	addon client.Object
	// managed is the cluster; nil when it does not exist.
	managed *clusterv1.ManagedCluster
	// namespace is that of the cluster; nil when it does not exist.
	namespace *metav1.PartialObjectMetadata
	// selected reports whether a placement of the install strategy selects the cluster, and brought whether another add-on
	// there brings this one along.
	selected, brought bool
	// outdated reports whether cma is gone from the API server, or another one has its name. It is asked for an add-on
	// that went, and for one that does not belong to cma: the garbage collector deletes what belongs to one that is gone.
	outdated bool
	// asOCM reports whether all annotations of the cluster about add-ons are copied, see Reconciler.TrustAsOCM.
	asOCM bool
}

// plan is the decision about one add-on on one cluster; at most one of create and update is set.
type plan struct {
	create *addonv1beta1.ManagedClusterAddOn
	update client.Object
	// follows reports whether the update changes annotations to those of the cluster, see confirmCopied.
	follows bool
	// notReady is why a selected add-on is not created yet; an event starts the next pass. foreign reports whether it is
	// because the namespace belongs to others, which only a person changes.
	notReady error
	foreign  bool
	// outdated reports whether that is because the cache is behind, and nothing else may show when it no longer is.
	outdated bool
	// unselected reports whether no placement selects the cluster of an add-on that placements install.
	unselected bool
}

// decide returns the plan for one add-on on one cluster.
func decide(f facts) plan {
	cma := f.cma
	byPlacements := cma != nil && addonapi.StrategyOf(cma).ByPlacements
	f.selected = f.selected && byPlacements
	switch {
	case cma == nil || !cma.GetDeletionTimestamp().IsZero() || !addonapi.Managed(cma):
		return plan{}
	case f.addon != nil && !f.addon.GetDeletionTimestamp().IsZero():
		return plan{}
	case f.outdated:
		return plan{outdated: true, notReady: fmt.Errorf("ClusterManagementAddOn %s was deleted", cma.GetName())}
	case f.selected:
		return install(f)
	}
	var p plan
	if f.brought {
		p = install(f)
	} else {
		p = ensureOwner(f)
	}
	p.unselected = f.addon != nil && (byPlacements || isBrought(f.addon))
	return p
}

// install creates the add-on unless it exists or its cluster is not ready, and keeps the annotations of the cluster in
// step. An add-on that another manager installed for a placement gets our label, so that its placements can uninstall
// it.
func install(f facts) plan {
	if f.addon == nil {
		return create(f)
	}
	want := metav1.ObjectMeta{
		Labels: f.addon.GetLabels(), Annotations: f.addon.GetAnnotations(), OwnerReferences: f.addon.GetOwnerReferences(),
	}
	changed := setOwner(&want, f.cma, f.owners)
	if f.selected && (installedBy(f.addon) != "" || isBrought(f.addon)) {
		want.Labels = maps.Clone(want.Labels)
		metav1.SetMetaDataLabel(&want, names.LabelInstalledBy, names.InstalledByPlacement)
		changed = true
	}
	follows := false
	if f.managed != nil && isOurs(&want) && !hubprocess.NeverAccepted(f.managed) {
		if annotations, differ := copied(want.Annotations, f.managed.Annotations, f.asOCM); differ {
			follows = !sameAboutAddOns(want.Annotations, annotations)
			want.Annotations, changed = annotations, true
		}
	}
	p := updated(f, want, changed)
	p.follows = follows
	return p
}

// updated returns the plan that gives an add-on labels, annotations and owner references. Only then is it copied.
func updated(f facts, want metav1.ObjectMeta, changed bool) plan {
	if !changed {
		return plan{}
	}
	after := copyOf(f.addon)
	after.SetLabels(want.Labels)
	after.SetAnnotations(want.Annotations)
	after.SetOwnerReferences(want.OwnerReferences)
	return plan{update: after}
}

// create creates the add-on if its cluster is ready.
func create(f facts) plan {
	if foreign, err := unready(f); err != nil {
		return plan{notReady: err, foreign: foreign}
	}
	addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: f.cma.GetName(), Namespace: f.cluster,
		Labels: map[string]string{names.LabelInstalledBy: names.InstalledByPlacement},
	}}
	if !f.selected {
		addon.Labels[names.LabelInstalledBy] = names.InstalledByDependency
	}
	if annotations, differ := copied(nil, f.managed.Annotations, f.asOCM); differ {
		addon.Annotations = annotations
	}
	setOwner(addon, f.cma, f.owners)
	return plan{create: addon}
}

// unready returns why no add-on can be created on the cluster now, and whether it is because the namespace belongs to
// others.
func unready(f facts) (foreign bool, err error) {
	foreign, err = fleet.Unserved(f.cluster, f.managed, f.namespace)
	switch {
	case err != nil:
		return foreign, err
	case f.namespace == nil:
		return false, fmt.Errorf("there is no namespace %s: the cluster is not accepted yet", f.cluster)
	case !f.namespace.DeletionTimestamp.IsZero():
		return false, fmt.Errorf("namespace %s is being deleted", f.cluster)
	}
	return false, nil
}

// ensureOwner sets the owner reference without which an add-on is not deployed.
func ensureOwner(f facts) plan {
	if f.addon == nil {
		return plan{}
	}
	want := metav1.ObjectMeta{
		Labels: f.addon.GetLabels(), Annotations: f.addon.GetAnnotations(), OwnerReferences: f.addon.GetOwnerReferences(),
	}
	return updated(f, want, setOwner(&want, f.cma, f.owners))
}

// copyOf returns a copy of an object that may be changed.
func copyOf[T client.Object](o T) T {
	after, _ := runtime.Object(o).DeepCopyObject().(T) // A copy has the type of the original.
	return after
}

// setOwner makes the ClusterManagementAddOn an owner of the add-on, and its controller unless it has another one. It
// reports whether that changed anything.
func setOwner(addon, cma metav1.Object, version addonapi.Wire) bool {
	yes := true
	want := addonapi.Owner(version, ownerKind, cma)
	want.Controller, want.BlockOwnerDeletion = &yes, &yes
	have := addon.GetOwnerReferences()
	refs := make([]metav1.OwnerReference, 0, len(have)+1)
	same := false
	for _, ref := range have {
		switch {
		case isOwnerReference(ref, cma.GetName()):
			same = same || equalRefs(ref, want)
			continue
		case ref.Controller != nil && *ref.Controller:
			want.Controller = nil
		}
		refs = append(refs, ref)
	}
	if same && len(refs)+1 == len(have) {
		return false
	}
	addon.SetOwnerReferences(append(refs, want))
	return true
}

// isOwnerReference reports whether a reference names the ClusterManagementAddOn, in any API version and with any UID.
func isOwnerReference(ref metav1.OwnerReference, name string) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == addonv1beta1.GroupName && ref.Kind == ownerKind && ref.Name == name
}

// getsOwner reports whether the add-on is to belong to its ClusterManagementAddOn and does not yet, or belongs to
// another one of the same name, too: an earlier or a later one.
func getsOwner(f facts) bool {
	if f.addon == nil || !f.addon.GetDeletionTimestamp().IsZero() || !addonapi.Managed(f.cma) {
		return false
	}
	owned := false
	for _, ref := range f.addon.GetOwnerReferences() {
		switch {
		case !isOwnerReference(ref, f.cma.GetName()):
		case ref.UID != f.cma.GetUID():
			return true
		default:
			owned = true
		}
	}
	return !owned
}

func equalRefs(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.UID == b.UID && isTrue(a.Controller) == isTrue(b.Controller) &&
		isTrue(a.BlockOwnerDeletion) == isTrue(b.BlockOwnerDeletion)
}

func isTrue(b *bool) bool { return b != nil && *b }
