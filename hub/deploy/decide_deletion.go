package deploy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// conditionDeleting explains what an add-on that is being deleted waits for. It is Spokelet's own addition.
	conditionDeleting = "addon.spokelet.io/Deleting"

	reasonWaitingForHook      = "WaitingForHook"
	reasonForeignFinalizers   = "ForeignFinalizers"
	reasonHookNotCompleted    = "HookManifestIsNotCompleted"
	eventFinalizersRemoved    = "FinalizersRemoved"
	eventHookSkipped          = "PreDeleteHookSkipped"
	foreignTimeout            = 10 * time.Second
	finalizerHook             = addonv1beta1.AddonPreDeleteHookFinalizer
	finalizerHookOld          = addonv1alpha1.AddonDeprecatedPreDeleteHookFinalizer
	finalizerHostedHook       = addonv1beta1.AddonHostingPreDeleteHookFinalizer
	finalizerHostedHookOld    = addonv1alpha1.AddonDeprecatedHostingPreDeleteHookFinalizer
	finalizerHostedObjects    = addonv1beta1.AddonHostingManifestFinalizer
	finalizerHostedObjectsOld = addonv1alpha1.AddonDeprecatedHostingManifestFinalizer
)

// deletionFacts are the inputs of the decision about an add-on with finalizers that is being deleted. The objects
// belong to the cache and must not be changed.
type deletionFacts struct {
	now   time.Time
	addOn *addonv1beta1.ManagedClusterAddOn
	// ours reports whether the add-on is made of templates. Then this hub manager does the work that the finalizers guard.
	// Every other add-on has a manager of its author.
	ours bool
	// managed is false without a ClusterManagementAddOn; then nothing can be rendered.
	managed bool
	// cluster is nil when there is none.
	cluster *clusterv1.ManagedCluster
	// namespaceDeleting reports that nothing can be created in the namespace of the cluster any more.
	namespaceDeleting bool
	rendering         addon.Rendering
	renderErr         error
	// hook is the ManifestWork of the pre-delete hook, nil when there is none.
	hook *workv1.ManifestWork
	// hostedHooks and hosted are the ManifestWorks of the add-on in the namespaces of hosting clusters.
	hostedHooks, hosted []*workv1.ManifestWork
	// hosts are those namespaces of hosting clusters whose cluster exists.
	hosts map[string]bool
}

// deletionPlan is the decision about such an add-on.
type deletionPlan struct {
	// create is the ManifestWork that runs the pre-delete hook; nil for none.
	create *workv1.ManifestWork
	// remove are ManifestWorks in namespaces of hosting clusters that are deleted.
	remove []*workv1.ManifestWork
	// drop are the finalizers that are removed after the works; because has a sentence of explanation for each reason.
	drop    []string
	because []string
	// skipped reports that a hook was required and cannot run.
	skipped bool
	// conditions explain what the deletion waits for.
	conditions []metav1.Condition
	wake       time.Time
}

// decideDeletion decides about the finalizers of an add-on. The work that a finalizer guards is done first; a finalizer
// stays as long as the facts are unknown.
func decideDeletion(f deletionFacts) deletionPlan {
	var p deletionPlan
	foreign := slices.Clone(f.addOn.Finalizers)
	if f.ours {
		foreign = slices.DeleteFunc(foreign, isOCMFinalizer)
		decideHook(f, &p)
		decideHosted(f, &p)
	}
	if len(foreign) == 0 {
		return p
	}
	if until := f.addOn.DeletionTimestamp.Add(foreignTimeout); f.now.Before(until) {
		p.wake = until // Who put them there may be at it.
		return p
	}
	p.conditions = append(p.conditions, foreignFinalizers(f, foreign))
	return p
}

// isOCMFinalizer reports whether an add-on manager of OCM puts this finalizer on add-ons.
func isOCMFinalizer(finalizer string) bool {
	return slices.Contains([]string{
		finalizerHook, finalizerHookOld, finalizerHostedHook, finalizerHostedHookOld, finalizerHostedObjects,
		finalizerHostedObjectsOld,
	}, finalizer)
}

// finalizersOf returns those of the given finalizers that the add-on has.
func finalizersOf(addOn *addonv1beta1.ManagedClusterAddOn, finalizers ...string) []string {
	return slices.DeleteFunc(finalizers, func(f string) bool { return !slices.Contains(addOn.Finalizers, f) })
}

// foreignFinalizers returns the condition that names finalizers which are not ours, who has to remove them, and the
// remedy.
func foreignFinalizers(f deletionFacts, finalizers []string) metav1.Condition {
	who := "whoever put them there has to remove them"
	if !f.ours && slices.ContainsFunc(finalizers, isOCMFinalizer) {
		who = "the add-on manager that its author runs has to remove them, because the add-on is not made of " +
			"AddOnTemplates; look whether that manager runs"
	}
	return metav1.Condition{
		Type: conditionDeleting, Status: metav1.ConditionFalse, Reason: reasonForeignFinalizers,
		Message: fmt.Sprintf("The add-on waits for its finalizers %s: %s. If it does not exist any more, see that nothing "+
			"is left of the add-on on the cluster and remove them: %s", strings.Join(finalizers, ", "), who, unblock(f.addOn)),
	}
}

// unblock returns the command that removes all finalizers of an add-on.
func unblock(addOn *addonv1beta1.ManagedClusterAddOn) string {
	return fmt.Sprintf(`kubectl patch managedclusteraddon %s -n %s --type=merge -p '{"metadata":{"finalizers":null}}'`,
		addOn.Name, addOn.Namespace)
}

// decideHook handles the finalizer of the pre-delete hook: the hook must complete on the cluster.
func decideHook(f deletionFacts, p *deletionPlan) {
	finalizers := finalizersOf(f.addOn, finalizerHook, finalizerHookOld)
	if len(finalizers) == 0 {
		return
	}
	dropFinalizers := func(because string) {
		p.drop, p.because = append(p.drop, finalizers...), append(p.because, because)
	}
	wait := func(message string) {
		p.conditions = append(p.conditions, hookPending(message),
			metav1.Condition{
				Type: conditionDeleting, Status: metav1.ConditionFalse, Reason: reasonWaitingForHook,
				Message: fmt.Sprintf("%s To delete the add-on without the hook: %s", message, unblock(f.addOn)),
			})
	}
	switch {
	case f.cluster == nil:
		p.skipped = true
		dropFinalizers("There is no ManagedCluster any more on which a pre-delete hook could run.")
	case f.hook != nil && hookCompleted(f.hook):
		dropFinalizers("The pre-delete hook is complete.")
	case f.hook != nil && (f.hook.DeletionTimestamp == nil || !f.namespaceDeleting):
		wait(hookProgress(f))
	case f.namespaceDeleting:
		p.skipped = true
		dropFinalizers("The namespace of the cluster is being deleted, so a pre-delete hook cannot run any more.")
	case !f.managed:
		wait(fmt.Sprintf("It is unknown whether a pre-delete hook has to run: there is no ClusterManagementAddOn %s any "+
			"more, which says what the add-on consists of; create it again, and delete it with --cascade=foreground.",
			f.addOn.Name))
	case f.renderErr != nil:
		wait(fmt.Sprintf("It is unknown whether a pre-delete hook has to run: %s", sentence(f.renderErr.Error())))
	default:
		hooks, err := hookManifests(f.rendering.Objects)
		switch {
		case err != nil:
			wait(sentence(err.Error()))
		case len(hooks) == 0:
			dropFinalizers("The add-on has no pre-delete hook.")
		default:
			p.create = newHookWork(f, hooks)
			wait(fmt.Sprintf("The pre-delete hook runs on the cluster (ManifestWork %s).", p.create.Name))
		}
	}
}

// hookPending returns the condition that OCM's tools read.
func hookPending(message string) metav1.Condition {
	return metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnHookManifestCompleted, Status: metav1.ConditionFalse,
		Reason: reasonHookNotCompleted, Message: message,
	}
}

// hookProgress describes the progress of the hook.
func hookProgress(f deletionFacts) string {
	text := fmt.Sprintf("The pre-delete hook runs on the cluster and is not complete (ManifestWork %s).", f.hook.Name)
	if clusterSilent(f.cluster) {
		text += " The cluster does not report to the hub at present."
	}
	return text
}

// decideHosted handles the finalizers of hosted mode: a hook on the hosting cluster must complete, then the works there
// are deleted. A template runs nothing on a hosting cluster, so these are works of an earlier manager of the add-on.
func decideHosted(f deletionFacts, p *deletionPlan) {
	hook := finalizersOf(f.addOn, finalizerHostedHook, finalizerHostedHookOld)
	objects := finalizersOf(f.addOn, finalizerHostedObjects, finalizerHostedObjectsOld)
	if len(hook) == 0 && len(objects) == 0 {
		return
	}
	for _, work := range f.hostedHooks {
		if len(hook) > 0 && f.hosts[work.Namespace] && work.DeletionTimestamp == nil && !hookCompleted(work) {
			message := fmt.Sprintf("The pre-delete hook on the hosting cluster is not complete (ManifestWork %s/%s).",
				work.Namespace, work.Name)
			p.conditions = append(p.conditions, metav1.Condition{
				Type: conditionDeleting, Status: metav1.ConditionFalse, Reason: reasonWaitingForHook,
				Message: fmt.Sprintf("%s To delete the add-on without the hook: %s", message, unblock(f.addOn)),
			})
			return
		}
	}
	for _, work := range slices.Concat(f.hostedHooks, f.hosted) {
		if work.DeletionTimestamp == nil {
			p.remove = append(p.remove, work)
		}
	}
	p.drop = append(p.drop, slices.Concat(hook, objects)...)
	p.because = append(p.because, "Nothing of the add-on stays on a hosting cluster.")
}

// withoutFinalizers returns the add-on without the finalizers that are removed.
func (p deletionPlan) withoutFinalizers(addOn *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
	after := addOn.DeepCopy()
	after.Finalizers = slices.DeleteFunc(after.Finalizers, func(f string) bool { return slices.Contains(p.drop, f) })
	return after
}

// ofTemplates reports whether the hub recorded that an add-on is made of templates. It is used when the
// ClusterManagementAddOn is gone.
func ofTemplates(addOn *addonv1beta1.ManagedClusterAddOn, template addonv1beta1.ConfigGroupResource) bool {
	return slices.Contains(addOn.Status.SupportedConfigs, template)
}

// hostedKind reports whether a ManifestWork in the namespace of a hosting cluster is the hook of an add-on, or has
// objects of it.
func hostedKind(addOn *addonv1beta1.ManagedClusterAddOn, work *workv1.ManifestWork) (hook, objects bool) {
	if work.Labels[names.LabelAddonNamespace] != addOn.Namespace || work.Namespace == addOn.Namespace {
		return false, false
	}
	return work.Name == hookWorkName(addOn.Name)+"-hosting-"+addOn.Namespace,
		strings.HasPrefix(work.Name, workPrefix(addOn.Name)+"hosting-"+addOn.Namespace+"-")
}
