package deploy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	reasonWaitingForHook    = "WaitingForHook"
	reasonHookFailed        = "HookFailed"
	reasonHookDeadline      = "HookDeadlineExceeded"
	reasonForeignFinalizers = "ForeignFinalizers"
	reasonHookNotCompleted  = "HookManifestIsNotCompleted"
	reasonHookCompleted     = "HookManifestIsCompleted"
	eventFinalizersRemoved  = "FinalizersRemoved"
	eventHookSkipped        = "PreDeleteHookSkipped"
	eventHookFailed         = "PreDeleteHookFailed"
	foreignTimeout          = 10 * time.Second
)

// setFor returns the set of works for the hooks of a side.
func (f deletionFacts) setFor(h hookFacts) works.Set {
	set := setOf(f.facts, h.side, works.PreDelete)
	set.Namespace = h.name
	return set
}

// decideDeletion decides about the finalizers of an add-on. The work that a finalizer guards is done first: the hooks,
// on both sides at the same time, then the works on hosting clusters. A finalizer stays as long as the facts are
// unknown.
func decideDeletion(f deletionFacts) deletionPlan {
	var p deletionPlan
	if slices.Contains(f.addOn.Finalizers, names.FinalizerDependents) {
		if decideDependents(f, &p); f.ours && len(p.drop) == 0 {
			p.waits, p.works = true, keptWorks(f)
		}
		return p
	}
	foreign := slices.Clone(f.addOn.Finalizers)
	if f.ours {
		foreign = slices.DeleteFunc(foreign, isOCMFinalizer)
		if len(foreign) < len(f.addOn.Finalizers) {
			decideGuards(f, &p)
		} else if meta.IsStatusConditionFalse(f.addOn.Status.Conditions,
			addonv1beta1.ManagedClusterAddOnHookManifestCompleted) {
			p.conditions = append(p.conditions, hookCompleted(true, "Nothing is left to run before the add-on is deleted."))
		}
	}
	if len(foreign) == 0 {
		return p
	}
	if until := f.addOn.DeletionTimestamp.Add(foreignTimeout); f.now.Before(until) {
		p.wake = reconcile.Earliest(p.wake, until) // Who put them there may be at it.
		return p
	}
	says := func(c metav1.Condition) bool { return c.Type == names.ConditionAddOnDeleting }
	if !slices.ContainsFunc(p.conditions, says) {
		p.conditions = append(p.conditions, foreignFinalizers(f, foreign))
	}
	return p
}

// decideGuards decides about the finalizers of ours: when the hooks of both sides are done, works on hosting clusters
// are deleted, and then the finalizers are removed. Until then the deploy works are kept as they should be, because a
// hook may need what they deploy.
func decideGuards(f deletionFacts, p *deletionPlan) {
	var waiting []hookPlan
	var texts []string
	p.works = works.Left(f.addOn, f.works)
	record := recordOf(f.addOn.Annotations)
	if len(finalizersOf(f.addOn, finalizerHook, finalizerHookOld, finalizerHostedHook, finalizerHostedHookOld)) > 0 {
		for _, h := range []hookFacts{managedHooks(f), hostedHooks(f)} {
			hook := decideHooks(f, h)
			if done := record[h.side].Done; !hook.done && done != "" && done == string(f.addOn.UID) {
				hook = hookPlan{done: true, message: fmt.Sprintf("The pre-delete hook was done on %s.", h.describe())}
			}
			p.works = append(p.works, hook.steps...)
			p.skipped = p.skipped || hook.skipped
			p.wake = reconcile.Earliest(p.wake, hook.wake)
			if hook.message != "" {
				texts = append(texts, hook.message)
			}
			if hook.failed != nil {
				record[h.side] = *hook.failed
				p.failures = append(p.failures, hook.message)
				p.attempts = encodeRecord(record)
			}
			if !hook.done {
				waiting = append(waiting, hook)
			}
		}
	}
	if len(waiting) > 0 {
		p.skipped, p.waits = false, true
		p.conditions = waitingForHooks(f, waiting, strings.Join(texts, " "))
		p.works = append(p.works, keptWorks(f)...)
		return
	}
	for _, purpose := range []works.Purpose{works.PreDelete, works.Deploy} {
		for _, work := range setOf(f.facts, works.Hosting, purpose).Select(f.works) {
			if work.DeletionTimestamp == nil {
				p.works = append(p.works, workStep{Verb: reconcile.Delete, Before: work})
			}
		}
	}
	if len(p.works) > 0 {
		p.attempts = recordDone(f, record)
	}
	p.drop = slices.DeleteFunc(slices.Clone(f.addOn.Finalizers), func(name string) bool { return !isOCMFinalizer(name) })
	p.because = slices.Concat(texts, []string{"Nothing of the add-on stays on a hosting cluster."})
}

// recordDone returns the record with the fact that all hooks are done, or nothing when it has that already. Without it,
// a hub manager that deleted the works that show it, and could not remove the finalizers, would run the hooks again.
func recordDone(f deletionFacts, record map[works.Side]attempts) string {
	before := encodeRecord(record)
	for _, side := range []works.Side{works.Managed, works.Hosting} {
		done := record[side]
		done.Done = string(f.addOn.UID)
		record[side] = done
	}
	if after := encodeRecord(record); after != before {
		return after
	}
	return ""
}

func encodeRecord(record map[works.Side]attempts) string {
	raw, err := json.Marshal(record)
	if err != nil {
		return "" // Strings, numbers and times of this era can always be encoded.
	}
	return string(raw)
}

// managedHooks returns the facts about the hooks on the managed cluster.
func managedHooks(f deletionFacts) hookFacts {
	h := hookFacts{
		side: works.Managed, cluster: f.cluster, name: f.addOn.Namespace, noNamespace: f.namespaceDeleting,
	}
	for _, work := range setOf(f.facts, works.Managed, works.PreDelete).Select(f.works) {
		h.work = work
	}
	return withHooks(f, h)
}

// hostedHooks returns the facts about the hooks on the hosting cluster. A work that is on another hosting cluster,
// because the add-on moved or an earlier manager left it there, is the one that counts as long as that cluster exists.
func hostedHooks(f deletionFacts) hookFacts {
	h := hookFacts{side: works.Hosting, name: hostName(f.facts)}
	state := hostOf(f.facts)
	if state == hostReady || state.untouched() {
		h.cluster = f.host
	}
	gone := ""
	for _, work := range setOf(f.facts, works.Hosting, works.PreDelete).Select(f.works) {
		uid, written := work.Annotations[names.AnnotationAddonUID]
		switch host := f.hosts[work.Namespace]; {
		case written && uid != string(f.addOn.UID):
			h.earlier = work
		case host == nil || host.DeletionTimestamp != nil:
			gone = work.Namespace
		case h.work == nil || work.Namespace == hostName(f.facts):
			h.work, h.cluster, h.name = work, host, work.Namespace
		}
	}
	h = withHooks(f, h)
	switch {
	case h.work == nil && state.untouched() && !f.isGuarded():
		// Nothing of the add-on was ever there.
		h.none, h.hooks, h.unknown = true, nil, ""
	case h.work != nil || h.cluster != nil:
	case gone != "":
		h.name = gone
	case state == hostNone || (h.unknown == "" && len(h.hooks) == 0):
		// Nothing can have to run there.
		h.none, h.hooks, h.unknown = true, nil, ""
	}
	return h
}

// isGuarded reports whether something of the add-on may be on a hosting cluster.
func (f deletionFacts) isGuarded() bool {
	return len(finalizersOf(f.addOn, finalizerHostedHook, finalizerHostedHookOld, finalizerHostedObjects,
		finalizerHostedObjectsOld)) > 0
}

// withHooks adds the hooks of a side, or why they are unknown.
func withHooks(f deletionFacts, h hookFacts) hookFacts {
	switch {
	case !f.managed:
		h.unknown = fmt.Sprintf("there is no ClusterManagementAddOn %s any more, which says what the add-on consists of; "+
			"create it again", f.addOn.Name)
		return h
	case f.renderErr != nil:
		h.unknown = f.renderErr.Error()
		return h
	}
	d, err := works.Divide(f.rendering.Objects, hostOf(f.facts) != hostNone)
	if err != nil {
		h.unknown = err.Error()
		return h
	}
	h.hooks = d.Hooks[h.side]
	return h
}

// keptWorks plans the deploy works of an add-on whose hooks run. Where anything about them is unknown, they stay.
func keptWorks(f deletionFacts) []workStep {
	if !f.managed || f.accepted() != nil || f.renderErr != nil || f.setupErr != nil || f.cluster == nil ||
		f.namespaceDeleting || f.cluster.DeletionTimestamp != nil {
		return nil
	}
	w, err := planWorks(f.facts)
	if err != nil {
		return nil
	}
	// What is on hosting clusters goes after the hooks.
	return slices.DeleteFunc(w.steps, func(s workStep) bool {
		return s.Verb == reconcile.Delete && sideOf(f.addOn, s.Before) == works.Hosting
	})
}

// waitingForHooks returns the conditions of an add-on that waits for hooks. The most urgent reason counts.
func waitingForHooks(f deletionFacts, waiting []hookPlan, text string) []metav1.Condition {
	reason := reasonWaitingForHook
	for _, urgent := range []string{reasonHookFailed, reasonHookDeadline} {
		if slices.ContainsFunc(waiting, func(h hookPlan) bool { return h.reason == urgent }) {
			reason = urgent
		}
	}
	return []metav1.Condition{hookCompleted(false, text), {
		Type: names.ConditionAddOnDeleting, Status: metav1.ConditionFalse, Reason: reason,
		Message: fmt.Sprintf("%s To delete the add-on without the hook: kubectl annotate managedclusteraddon %s -n %s "+
			"--overwrite %s=0s %s=%s", text, f.addOn.Name, f.addOn.Namespace, names.AnnotationHookDeadline,
			names.AnnotationHookAfterDeadline, afterSkip),
	}}
}

// hookCompleted returns the condition about hooks that OCM's tools read.
func hookCompleted(completed bool, message string) metav1.Condition {
	condition := metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnHookManifestCompleted, Status: metav1.ConditionFalse,
		Reason: reasonHookNotCompleted, Message: message,
	}
	if completed {
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonHookCompleted
	}
	return condition
}

// finalizersOf returns those of the given finalizers that the add-on has.
func finalizersOf(addOn *addonv1beta1.ManagedClusterAddOn, finalizers ...string) []string {
	return slices.DeleteFunc(finalizers, func(f string) bool { return !slices.Contains(addOn.Finalizers, f) })
}

// foreignFinalizers returns the condition that names finalizers which are not ours, who has to remove them, and the
// remedy.
func foreignFinalizers(f deletionFacts, finalizers []string) metav1.Condition {
	who := "the client that put them there has to remove them"
	if !f.ours && slices.ContainsFunc(finalizers, isOCMFinalizer) {
		who = "the add-on manager that its author runs has to remove them, because the add-on is not made of " +
			"AddOnTemplates; look whether that manager runs"
	}
	return metav1.Condition{
		Type: names.ConditionAddOnDeleting, Status: metav1.ConditionFalse, Reason: reasonForeignFinalizers,
		Message: fmt.Sprintf("The add-on waits for its finalizers %s: %s. If it does not exist any more, see that nothing "+
			"is left of the add-on on the cluster and remove them: %s", strings.Join(finalizers, ", "), who, unblock(f.addOn)),
	}
}

// unblock returns the command that removes all finalizers of an add-on.
func unblock(addOn *addonv1beta1.ManagedClusterAddOn) string {
	return fmt.Sprintf(`kubectl patch managedclusteraddon %s -n %s --type=merge -p '{"metadata":{"finalizers":null}}'`,
		addOn.Name, addOn.Namespace)
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

// hookNamespaces returns the namespaces of hosting clusters in which works of hooks are.
func hookNamespaces(f facts) []string {
	var all []string
	for _, work := range setOf(f, works.Hosting, works.PreDelete).Select(f.works) {
		all = append(all, work.Namespace)
	}
	return all
}
