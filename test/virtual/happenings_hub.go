package virtual

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spokelet/spokelet/internal/names"
)

// configure gives an add-on of a cluster a configuration of its own.
func (p *play) configure() {
	o := one{p.some().Name, p.hooked()}
	p.configured = append(p.configured, o)
	config := ownConfiguration(o)
	config.Spec.CustomizedVariables = []addonv1alpha1.CustomizedVariable{{Name: "LEVEL", Value: p.nextImage("level-")}}
	if err := p.admin.Create(p.ctx, config); err != nil && !apierrors.IsAlreadyExists(err) {
		p.judge.violated("creating the configuration of %s of %s: %v", o.addOn, o.cluster, err)
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var addOn addonv1alpha1.ManagedClusterAddOn
		if err := p.admin.Get(p.ctx, client.ObjectKey{Namespace: o.cluster, Name: o.addOn}, &addOn); err != nil {
			return client.IgnoreNotFound(err)
		}
		addOn.Spec.Configs = []addonv1alpha1.AddOnConfig{{
			ConfigGroupResource: configKind(),
			ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: config.Namespace, Name: config.Name},
		}}
		return p.admin.Update(p.ctx, &addOn)
	})
	if err != nil {
		p.judge.violated("configuring %s of %s: %v", o.addOn, o.cluster, err)
	}
}

func ownConfiguration(o one) *addonv1alpha1.AddOnDeploymentConfig {
	return &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster, Name: o.addOn}}
}

// prune deletes an add-on of a cluster and its configuration at once, as GitOps does. The hub manager has to run its
// hook, and to install it again.
func (p *play) prune() {
	if len(p.configured) == 0 {
		return
	}
	o := p.configured[p.IntN(len(p.configured))]
	p.judge.handed(o)
	p.deleteByHand(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster, Name: o.addOn}})
	p.deleteByHand(ownConfiguration(o))
}

// withdraw deletes the definition of an add-on, and with it the add-on of all clusters, and writes it again later:
// soon, or so late that all of them must be gone.
func (p *play) withdraw() {
	addOn := p.addOn()
	if p.isWithdrawn(addOn) {
		return
	}
	p.withdraws(addOn)
	pause := p.between(time.Second, 20*time.Minute)
	if p.IntN(2) == 0 {
		pause += gone
	}
	p.later(pause, func() { p.offer(addOn) })
}

// withdraws deletes the definition of an add-on.
func (p *play) withdraws(addOn string) {
	p.judge.withdraws(addOn, true)
	var selected []string
	for _, c := range p.clusters {
		if o := (one{c.Name, addOn}); p.judge.want(o) {
			selected = append(selected, c.Name)
			p.judge.wants(o, false)
		}
	}
	p.mu.Lock()
	p.withdrawn[addOn] = selected
	p.mu.Unlock()
	p.deleteByHand(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: addOn}})
}

func (p *play) isWithdrawn(addOn string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, is := p.withdrawn[addOn]
	return is
}

// offer writes the definition of an add-on again.
func (p *play) offer(addOn string) {
	p.judge.withdraws(addOn, false)
	p.mu.Lock()
	selected := p.withdrawn[addOn]
	delete(p.withdrawn, addOn)
	p.mu.Unlock()
	for _, cluster := range selected {
		p.judge.wants(one{cluster, addOn}, true)
	}
	if err := p.admin.Create(p.ctx, definitionOf(addOn)); err != nil {
		p.judge.violated("creating the definition of %s again: %v", addOn, err)
	}
}

// refuse lets the hub refuse what its manager creates for a cluster.
func (p *play) refuse() {
	c, pause := p.some(), p.between(time.Second, 5*time.Minute)
	p.judge.disturb(c.Name, time.Now().Add(pause))
	p.later(pause, p.way.suffer(refusesIn(c.Name)))
}

// refusesIn is a fault of a hub that takes nothing new in a namespace, as with a quota or a webhook that is away.
func refusesIn(namespace string) *fault {
	return refuses(http.StatusInternalServerError, metav1.StatusReasonInternalError,
		`failed calling webhook "limits.example.com": no endpoints available`, func(r *http.Request) bool {
			verb, resource, _ := about(r)
			return verb == "create" && resource != "leases" && strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/")
		})
}

// deleteWork deletes the ManifestWork of an add-on, which the hub manager has to make again.
func (p *play) deleteWork() {
	o := one{p.some().Name, p.addOn()}
	var works workv1.ManifestWorkList
	if err := p.admin.List(p.ctx, &works, client.InNamespace(o.cluster), client.MatchingLabels{
		addonv1alpha1.AddonLabelKey: o.addOn,
	}); err != nil {
		p.judge.violated("listing the works of %s of %s: %v", o.addOn, o.cluster, err)
		return
	}
	p.judge.handed(o)
	for i := range works.Items {
		p.deleteByHand(&works.Items[i])
	}
}

// deleteRevision deletes what the hub manager stored of the content of a configuration. One that the configuration does
// not have any more comes back only if the hub manager sees that it goes.
func (p *play) deleteRevision() {
	var found appsv1.ControllerRevisionList
	if err := p.admin.List(p.ctx, &found); err != nil || len(found.Items) == 0 || !p.judge.isCalm("") {
		return
	}
	revision := &found.Items[p.IntN(len(found.Items))]
	p.deleteByHand(revision)
	p.expectStored(revision)
}

// expectStored looks whether a content that is rolled out is stored again.
func (p *play) expectStored(deleted *appsv1.ControllerRevision) {
	addOn := deleted.Labels[names.LabelAddonName]
	image := p.chosenImages()[addOn]
	current := func() bool {
		return p.chosenImages()[addOn] == image && p.judge.wantsSome(addOn) && !p.isWithdrawn(addOn) && p.judge.isCalm("") &&
			bytes.Contains(deleted.Data.Raw, fmt.Appendf(nil, `"image":%q`, image))
	}
	if !current() {
		return
	}
	time.AfterFunc(repaired, func() {
		err := p.admin.Get(p.ctx, client.ObjectKeyFromObject(deleted), &appsv1.ControllerRevision{})
		if err != nil && current() {
			p.judge.violated("repaired: the stored content %s of %s with %s was deleted, and after %s: %v",
				deleted.Name, addOn, image, repaired, err)
		}
	})
}

// keptBy is the finalizer of another client.
const keptBy = "example.com/kept"

// keepPage lets a PlacementDecision stay for a while after it is deleted.
func (p *play) keepPage() {
	var pages clusterv1beta1.PlacementDecisionList
	if err := p.admin.List(p.ctx, &pages); err != nil || len(pages.Items) == 0 {
		return
	}
	page := &pages.Items[p.IntN(len(pages.Items))]
	if page.DeletionTimestamp != nil || !controllerutil.AddFinalizer(page, keptBy) {
		return
	}
	if err := p.admin.Update(p.ctx, page); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		p.judge.violated("keeping page %s: %v", page.Name, err)
	}
	p.later(p.between(time.Minute, 30*time.Minute), func() { p.release(client.ObjectKeyFromObject(page)) })
}

// release ends what keepPage began.
func (p *play) release(key client.ObjectKey) {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var page clusterv1beta1.PlacementDecision
		if err := p.admin.Get(p.ctx, key, &page); err != nil {
			return client.IgnoreNotFound(err)
		}
		if !controllerutil.RemoveFinalizer(&page, keptBy) {
			return nil
		}
		return client.IgnoreNotFound(p.admin.Update(p.ctx, &page))
	})
	if err != nil {
		p.judge.violated("releasing page %s: %v", key.Name, err)
	}
}

// editPlacement changes the status of a Placement, which the hub manager has to write again.
func (p *play) editPlacement() {
	addOn := p.addOn()
	if kindOf(addOn) == foreign {
		return
	}
	var placement clusterv1beta1.Placement
	if err := p.admin.Get(p.ctx, client.ObjectKey{Namespace: space, Name: addOn}, &placement); err != nil {
		return
	}
	if placement.Status.NumberOfSelectedClusters = 0; placement.Status.Conditions == nil {
		placement.Status.Conditions = []metav1.Condition{} // nobody has decided it yet, and null is not valid
	}
	placement.Status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{}
	if err := p.admin.Status().Update(p.ctx, &placement); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		p.judge.violated("changing the status of Placement %s: %v", addOn, err)
	}
	p.expectDecided(addOn)
}

// expectDecided looks whether the status of a Placement says how many clusters its pages have.
func (p *play) expectDecided(addOn string) {
	if !p.judge.isCalm("") {
		return
	}
	time.AfterFunc(repaired, func() {
		var placement clusterv1beta1.Placement
		var pages clusterv1beta1.PlacementDecisionList
		err := errors.Join(p.admin.Get(p.ctx, client.ObjectKey{Namespace: space, Name: addOn}, &placement),
			p.admin.List(p.ctx, &pages, client.InNamespace(space), client.MatchingLabels{clusterv1beta1.PlacementLabel: addOn}))
		if err != nil {
			p.judge.violated("reading what is decided for %s: %v", addOn, err)
			return
		}
		decided := 0
		for _, page := range pages.Items {
			if page.DeletionTimestamp == nil {
				decided += len(page.Status.Decisions)
			}
		}
		if said := int(placement.Status.NumberOfSelectedClusters); said != decided && p.judge.isCalm("") {
			p.judge.violated("repaired: the status of Placement %s says %d clusters, its pages have %d, and it was changed "+
				"%s ago", addOn, said, decided, repaired)
		}
	})
}

// expectInstalled looks whether an add-on is there in time, if nothing kept the hub manager from installing it. Another
// scheduler takes its own time.
func (p *play) expectInstalled(o one) {
	p.expectOfManager(o, func() {
		var addOn addonv1alpha1.ManagedClusterAddOn
		err := p.admin.Get(p.ctx, client.ObjectKey{Namespace: o.cluster, Name: o.addOn}, &addOn)
		if p.judge.want(o) && err != nil {
			p.judge.violated("selected-comes: %s was selected for %s, which is not installed after %s: %v",
				o.cluster, o.addOn, installed, err)
		}
	})
}

// expectUninstalled looks whether an add-on goes in time likewise.
func (p *play) expectUninstalled(o one) {
	p.expectOfManager(o, func() {
		var addOn addonv1alpha1.ManagedClusterAddOn
		err := p.admin.Get(p.ctx, client.ObjectKey{Namespace: o.cluster, Name: o.addOn}, &addOn)
		if !p.judge.selects(o) && err == nil && addOn.DeletionTimestamp == nil {
			p.judge.violated("deselected-goes: %s is not selected for %s any more, which is still installed after %s",
				o.cluster, o.addOn, installed)
		}
	})
}

// expectOfManager looks at an add-on after the time that the hub manager may take, if nothing keeps it from its work. A
// cluster that is away keeps it only where the Placement does not tolerate that.
func (p *play) expectOfManager(o one, look func()) {
	calm := func() bool {
		// One that says far too much cannot be judged by the expression of a hooked add-on (ADR 0019).
		minds := kindOf(o.addOn) == grouped || isHooked(o.addOn)
		return p.judge.isCalm("") && !p.isWithdrawn(o.addOn) && (!minds || p.judge.isCalm(o.cluster))
	}
	if kindOf(o.addOn) == foreign || !calm() {
		return
	}
	time.AfterFunc(installed, func() {
		if calm() {
			look()
		}
	})
}

// claims are more than an expression of a Placement may look at.
const claims = 4000

// claim lets a cluster say far too much about itself while its agent does not see it.
func (p *play) claim() {
	c := p.some()
	p.outage(c.Name, c.toHub, time.Minute, 30*time.Minute)
	p.claims(c)
	if other := p.some(); other != c { // which the same expression selects
		p.toggles(one{other.Name, p.hooked()})
	}
}

// claims writes far too many claims of a cluster.
func (p *play) claims(c *Cluster) {
	many := make([]clusterv1.ManagedClusterClaim, claims)
	for i := range many {
		many[i] = clusterv1.ManagedClusterClaim{Name: fmt.Sprintf("claim-%04d.example.com", i), Value: "a value"}
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var cluster clusterv1.ManagedCluster
		if err := p.admin.Get(p.ctx, client.ObjectKey{Name: c.Name}, &cluster); err != nil {
			return fmt.Errorf("reading cluster %s: %w", c.Name, err)
		}
		cluster.Status.ClusterClaims = many
		return p.admin.Status().Update(p.ctx, &cluster)
	})
	if err != nil {
		p.judge.violated("writing the claims of %s: %v", c.Name, err)
	}
}
