package virtual

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

// sharedSpace is a namespace of the hub in which grouped add-ons of all clusters have a role.
const sharedSpace = "shared"

// routine holds what happens in each calm time at the same instants, because what follows can be judged only while the
// hub has been well for a while.
func (p *play) routine(lasts time.Duration) {
	for at := roughTime + recovered + 10*time.Minute; at < lasts; at += roughTime + calmTime {
		time.AfterFunc(at, p.takeNamespace)
		time.AfterFunc(at+10*time.Minute, p.editProbe)
		time.AfterFunc(at+15*time.Minute, p.claimMuch)
	}
}

// claimMuch lets a cluster that is selected say far too much about itself for some minutes, and selects another one, or
// takes it out.
func (p *play) claimMuch() {
	addOn := addOnName(int(plain))
	i := slices.IndexFunc(p.clusters, func(c *Cluster) bool { return p.judge.want(one{c.Name, addOn}) })
	if i < 0 || len(p.clusters) == 1 {
		return
	}
	c, other := p.clusters[i], p.clusters[(i+1)%len(p.clusters)]
	p.judge.disturb(c.Name, time.Now().Add(2*installed))
	c.toHub.cut()
	p.later(2*installed, c.toHub.mend)
	p.claims(c)
	p.toggles(one{other.Name, addOn})
}

// takeNamespace makes a shared namespace that of a managed cluster, as a user does who registers one with its
// name, and gives it back. Agents of other clusters have no role there meanwhile, and all of them have afterwards.
func (p *play) takeNamespace() {
	p.labelNamespace(true)
	p.expectRoles(false)
	p.later(5*time.Minute, func() {
		p.labelNamespace(false)
		p.expectRoles(true)
	})
}

// labelNamespace sets the label that makes the shared namespace that of a cluster, or takes it away.
func (p *play) labelNamespace(set bool) {
	err := edits(p, sharedSpace, func(namespace *corev1.Namespace) {
		if namespace.Labels = map[string]string{}; set {
			namespace.Labels[names.LabelClusterName] = sharedSpace
		}
	})
	if err != nil {
		p.judge.violated("labelling namespace %s: %v", sharedSpace, err)
	}
}

// expectRoles looks whether the agents of all clusters have a role in the shared namespace, or none has, if nothing
// kept the hub manager from its work.
func (p *play) expectRoles(want bool) {
	if !p.judge.isCalm("") {
		return
	}
	time.AfterFunc(settled, func() {
		var bindings rbacv1.RoleBindingList
		var addOns addonv1alpha1.ManagedClusterAddOnList
		if !p.lists(&bindings, client.InNamespace(sharedSpace)) || !p.lists(&addOns) || !p.judge.isCalm("") {
			return
		}
		has := map[one]bool{}
		for _, b := range bindings.Items {
			has[one{b.Labels[names.LabelClusterName], b.Labels[names.LabelAddonName]}] = true
		}
		for _, a := range addOns.Items {
			o := one{a.Namespace, a.Name}
			if kindOf(o.addOn) != grouped || a.DeletionTimestamp != nil || p.isWithdrawn(o.addOn) ||
				!p.hasOldWork(o, "") { // one that waits for its turn in a rollout has no permissions yet
				continue
			}
			if p.judge.count("roles looked at"); has[o] != want {
				p.judge.violated("roles: the agent of %s on %s has a role in namespace %s: %t, %s after this changed",
					o.addOn, o.cluster, sharedSpace, has[o], settled)
			}
		}
	})
}

// lists reads a list of objects of the hub, and reports whether it could.
func (p *play) lists(list client.ObjectList, options ...client.ListOption) bool {
	err := p.admin.List(p.ctx, list, options...)
	if err != nil {
		p.judge.violated("listing %T: %v", list, err)
	}
	return err == nil
}

// editProbe asks for another way to tell the health of an add-on, which counts from the next rollout on, and thinks
// better of it. Nobody changes a template meanwhile.
func (p *play) editProbe() {
	p.editing <- struct{}{}
	defer func() { <-p.editing }()
	addOn := addOnName(int(grouped))
	p.setProbe(addOn, string(addon.HealthLease))
	if p.judge.isCalm("") {
		time.Sleep(settled)
		p.expectTold(addOn)
	}
	p.setProbe(addOn, "")
}

// setProbe sets how the template of an add-on asks for its health to be told.
func (p *play) setProbe(addOn, probe string) {
	err := edits(p, addOn, func(now *addonv1alpha1.AddOnTemplate) {
		if now.Annotations = map[string]string{}; probe != "" {
			now.Annotations[names.AnnotationHealthProbe] = probe
		}
	})
	if err != nil {
		p.judge.violated("annotating the template of %s: %v", addOn, err)
	}
}

// expectTold looks whether the complete ones among an add-on of all clusters say that what the template asks for is not
// in use yet.
func (p *play) expectTold(addOn string) {
	var addOns addonv1alpha1.ManagedClusterAddOnList
	if !p.lists(&addOns) || !p.judge.isCalm("") || p.isWithdrawn(addOn) {
		return
	}
	image := p.chosenImages()[addOn] // what waits for it gets the probe with it
	for _, a := range addOns.Items {
		progress := meta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionProgressing)
		applied := meta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ManagedClusterAddOnManifestApplied)
		if a.Name != addOn || a.DeletionTimestamp != nil || !p.judge.isCalm(a.Namespace) ||
			!p.hasOldWork(one{a.Namespace, addOn}, image) || progress == nil || applied == nil ||
			progress.Reason != addonv1alpha1.ProgressingReasonCompleted || applied.Status != metav1.ConditionTrue {
			continue
		}
		if p.judge.count("health told"); !strings.Contains(applied.Message, names.AnnotationHealthProbe) {
			p.judge.violated("probe-told: the template of %s asked %s ago for another health probe, and on %s it says %q",
				addOn, settled, a.Namespace, applied.Message)
		}
	}
}

// hasOldWork reports whether an add-on has had its work for a while, with an image or, where that is empty, with any.
func (p *play) hasOldWork(o one, image string) bool {
	var works workv1.ManifestWorkList
	if !p.lists(&works, client.InNamespace(o.cluster), client.MatchingLabels{addonv1alpha1.AddonLabelKey: o.addOn}) {
		return false
	}
	for _, w := range works.Items {
		if w.DeletionTimestamp != nil || time.Since(w.CreationTimestamp.Time) < installed {
			continue
		}
		for _, m := range w.Spec.Workload.Manifests {
			if bytes.Contains(m.Raw, fmt.Appendf(nil, `"image":"%s`, image)) {
				return true
			}
		}
	}
	return false
}
