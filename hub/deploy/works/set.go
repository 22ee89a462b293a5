package works

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Purpose says what the works of a set are for.
type Purpose string

const (
	// Deploy works are applied while the add-on lives.
	Deploy Purpose = "deploy"
	// PreDelete works run when the add-on is deleted. There is one at most on each side.
	PreDelete Purpose = "pre-delete"
)

// Set is the set of works of an add-on on one side for one purpose (docs/reference/hub.md, "Works of an add-on").
type Set struct {
	// AddOn is the add-on; its namespace is the managed cluster.
	AddOn *addonv1beta1.ManagedClusterAddOn
	// Owners is the version in which owner references name it; empty means v1beta1.
	Owners addonapi.Wire
	// Side is the cluster that the works are for.
	Side Side
	// Purpose says what they are for.
	Purpose Purpose
	// Namespace is the namespace of that cluster, where new works are created. It may be empty for a set without new
	// works.
	Namespace string
}

// Name names a work of the set; the index of a work of a hook is 0.
func (s Set) Name(index int) string {
	if s.Purpose == PreDelete {
		return s.prefix()
	}
	return s.prefix() + strconv.Itoa(index)
}

// prefix is the name of a work without its number.
func (s Set) prefix() string {
	prefix := "addon-" + s.AddOn.Name + "-" + string(s.Purpose)
	if s.Side == Hosting {
		prefix += "-hosting-" + s.AddOn.Namespace
	}
	if s.Purpose == PreDelete {
		return prefix
	}
	return prefix + "-"
}

// Index is the inverse of Name; false for any other name.
func (s Set) Index(name string) (int, bool) {
	if s.Purpose == PreDelete {
		return 0, name == s.prefix()
	}
	digits, found := strings.CutPrefix(name, s.prefix())
	if !found {
		return 0, false
	}
	index, err := strconv.Atoi(digits)
	return index, err == nil && index >= 0 && strconv.Itoa(index) == digits
}

// Has reports whether a work belongs to the set: its name says so, and it is ours. In the namespace of the add-on, ours
// is what the add-on owns. In any other namespace, where it can own nothing, the labels count, of works that
// hosting.Counts does.
func (s Set) Has(work *workv1.ManifestWork) bool {
	_, named := s.Index(work.Name)
	switch {
	case !named:
		return false
	case work.Namespace == s.AddOn.Namespace:
		return ownedBy(work, s.AddOn)
	}
	return s.Side == Hosting && work.Labels[names.LabelAddonName] == s.AddOn.Name &&
		work.Labels[names.LabelAddonNamespace] == s.AddOn.Namespace
}

// Select returns the works that belong to the set.
func (s Set) Select(works []*workv1.ManifestWork) []*workv1.ManifestWork {
	var selected []*workv1.ManifestWork
	for _, work := range works {
		if s.Has(work) {
			selected = append(selected, work)
		}
	}
	return selected
}

// labels returns the labels of the works. Works of hosted mode name the namespace of their add-on, also if it is their
// own, so that an index finds them and no manager takes them for works of the managed cluster.
func (s Set) labels() map[string]string {
	labels := map[string]string{names.LabelAddonName: s.AddOn.Name}
	if s.Side == Hosting {
		labels[names.LabelAddonNamespace] = s.AddOn.Namespace
	}
	return labels
}

// annotations returns the annotations that mark works in another namespace than that of their add-on; nil for none. An
// add-on that does not exist yet has no UID.
func (s Set) annotations() map[string]string {
	if s.Namespace == s.AddOn.Namespace || s.AddOn.UID == "" {
		return nil
	}
	return map[string]string{names.AnnotationAddonUID: string(s.AddOn.UID)}
}

// owners returns the owners of new works: the add-on in its own namespace, none in any other. A work that is created
// while the add-on is being deleted does not block that, or the garbage collector would delete the work at once where
// the deletion is in the foreground.
func (s Set) owners() []metav1.OwnerReference {
	if s.Namespace != s.AddOn.Namespace {
		return nil
	}
	owner := addonapi.Owner(s.Owners, "ManagedClusterAddOn", s.AddOn)
	owner.Controller = new(true)
	if s.AddOn.DeletionTimestamp.IsZero() {
		owner.BlockOwnerDeletion = new(true)
	}
	return []metav1.OwnerReference{owner}
}

// ownedBy reports whether an object belongs to this add-on, and not to an earlier one of the same name.
func ownedBy(object metav1.Object, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.UID == addOn.UID
	})
}

// ofAnEarlierAddOn reports whether a work belonged to an add-on of this name that was deleted since.
func ofAnEarlierAddOn(work *workv1.ManifestWork, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(work.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return isEarlier(owner, addOn)
	})
}

// isEarlier reports whether an owner is an add-on of this name that was deleted since.
func isEarlier(owner metav1.OwnerReference, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	return owner.Kind == "ManagedClusterAddOn" && owner.Name == addOn.Name && owner.UID != addOn.UID
}

// IsLeft reports whether nothing but earlier add-ons of this name owns an object.
func IsLeft(object metav1.Object, addOn *addonv1beta1.ManagedClusterAddOn) bool {
	owners := object.GetOwnerReferences()
	return len(owners) > 0 && !slices.ContainsFunc(owners, func(owner metav1.OwnerReference) bool {
		return !isEarlier(owner, addOn)
	})
}

// Left returns the steps that delete the works which nothing but earlier add-ons of this name owns. Kubernetes deletes
// them, too, and may need minutes for it: its garbage collector reads add-ons by the conversion of the hub manager, and
// pauses longer and longer while that is away.
func Left(addOn *addonv1beta1.ManagedClusterAddOn, have []*workv1.ManifestWork) []Step {
	var steps []Step
	for _, work := range have {
		if IsLeft(work, addOn) && work.DeletionTimestamp == nil {
			steps = append(steps, Step{Verb: reconcile.Delete, Before: work})
		}
	}
	return steps
}

// Step is a planned write of a work.
type Step = reconcile.Step[*workv1.ManifestWork]
