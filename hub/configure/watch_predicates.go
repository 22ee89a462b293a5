package configure

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// instructionsChanged passes changes of a ClusterManagementAddOn that may affect its add-ons.
func instructionsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return instructionsDiffer(e.ObjectOld, e.ObjectNew) || reportedHashesDiffer(e.ObjectOld, e.ObjectNew)
	}}
}

func instructionsDiffer(was, is client.Object) bool {
	return was.GetGeneration() != is.GetGeneration() ||
		was.GetAnnotations()[names.AnnotationLifecycle] != is.GetAnnotations()[names.AnnotationLifecycle]
}

// reportedHashesDiffer reports whether the manager of an add-on reported the hash of a kind that the hub does not read.
func reportedHashesDiffer(was, is client.Object) bool {
	before, err := addonapi.ClusterManagementAddOn(was)
	if err != nil {
		return true
	}
	after, err := addonapi.ClusterManagementAddOn(is)
	if err != nil {
		return true
	}
	return !slices.EqualFunc(reportedHashes(before), reportedHashes(after), func(a, b addonconfig.Reference) bool {
		return a.ConfigGroupResource == b.ConfigGroupResource && equality.Semantic.DeepEqual(a.Desired, b.Desired)
	})
}

func reportedHashes(cma *addonv1beta1.ClusterManagementAddOn) []addonconfig.Reference {
	references := addonconfig.DefaultReferences(cma.Status.DefaultConfigReferences)
	for _, progression := range cma.Status.InstallProgressions {
		references = append(references, addonconfig.PlacementReferences(progression.ConfigReferences)...)
	}
	return slices.DeleteFunc(references, func(r addonconfig.Reference) bool {
		_, ours := confighash.Kind(r.ConfigGroupResource)
		return ours
	})
}
