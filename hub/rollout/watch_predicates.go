package rollout

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
)

// present passes everything but deletions: an add-on that is gone needs nothing.
func present() predicate.Predicate {
	return predicate.Funcs{DeleteFunc: func(event.DeleteEvent) bool { return false }}
}

// selectionChanged passes Placements that are created or deleted, or whose conditions about the selection change.
func selectionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*clusterv1beta1.Placement)
		if !ok {
			return false
		}
		is, ok := e.ObjectNew.(*clusterv1beta1.Placement)
		return ok && selectionDiffers(was, is)
	}}
}

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
	return !slices.EqualFunc(reportedHashes(before), reportedHashes(after), func(a, b reference) bool {
		return a.ConfigGroupResource == b.ConfigGroupResource && equality.Semantic.DeepEqual(a.desired, b.desired)
	})
}

func reportedHashes(cma *addonv1beta1.ClusterManagementAddOn) []reference {
	references := defaultReferences(cma.Status.DefaultConfigReferences)
	for _, progression := range cma.Status.InstallProgressions {
		references = append(references, placementReferences(progression.ConfigReferences)...)
	}
	return slices.DeleteFunc(references, func(r reference) bool {
		_, ours := confighash.Kind(r.ConfigGroupResource)
		return ours
	})
}

// workProgressed passes changes of a work that may affect the progress of its add-on.
func workProgressed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, ok := e.ObjectOld.(*workv1.ManifestWork)
		if !ok {
			return false
		}
		is, ok := e.ObjectNew.(*workv1.ManifestWork)
		if !ok {
			return false
		}
		return was.Annotations[names.AnnotationConfigSpecHash] != is.Annotations[names.AnnotationConfigSpecHash] ||
			!maps.Equal(was.Labels, is.Labels) || ready(was) != ready(is)
	}}
}
