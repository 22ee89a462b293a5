package virtual

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/proxy"
)

// happening is one kind of event in a day.
type happening struct {
	name string
	// rough is how often it happens in a rough time, and calm in a calm one, in proportion to others.
	rough, calm int
	do          func(*play)
}

// happenings holds what happens in a day.
func happenings() []happening {
	return []happening{
		{"upgrade", 6, 6, (*play).upgrade},
		{"bad upgrade", 4, 4, (*play).badUpgrade},
		{"agent restarts", 12, 2, (*play).restartAgent},
		{"hub manager restarts", 4, 0, (*play).restartManager},
		{"cluster loses the hub", 12, 3, (*play).cutCluster},
		{"agent loses its cluster", 6, 0, (*play).cutOwn},
		{"hub manager loses the hub", 6, 0, (*play).cutManager},
		{"the hub lies to the hub manager", 6, 0, (*play).lieToManager},
		{"the hub manager falls behind", 12, 0, (*play).fallBehind},
		{"the hub lies to an agent", 8, 0, (*play).lieToAgent},
		{"a cluster lies to its agent", 8, 0, (*play).lieOfOwn},
		{"nothing is taken for a cluster", 4, 0, (*play).refuse},
		{"object deleted by hand", 20, 20, (*play).deleteObject},
		{"object edited by hand", 20, 20, (*play).editObject},
		{"cluster selected or not", 15, 15, (*play).toggle},
		{"clusters selected or not at once", 5, 5, (*play).toggleSome},
		{"a cluster gives up its place", 5, 5, (*play).giveUpPlace},
		{"other labels select", 5, 5, (*play).relabel},
		{"a toleration is added", 2, 2, (*play).tolerate},
		{"all clusters deselected, and taken back", 3, 3, (*play).takeBack},
		{"placement replaced", 5, 5, (*play).replacePlacement},
		{"placement replaced, which cannot be decided", 4, 4, (*play).replaceForeign},
		{"add-on deleted by hand", 5, 5, (*play).deleteAddOn},
		{"permission deleted by hand", 10, 10, (*play).deleteBinding},
		{"credential deleted by hand", 10, 10, (*play).deleteCredential},
		{"configuration of its own", 8, 8, (*play).configure},
		{"configuration deleted with its add-on", 6, 6, (*play).prune},
		{"definition deleted", 4, 4, (*play).withdraw},
		{"work deleted by hand", 6, 6, (*play).deleteWork},
		{"stored content deleted by hand", 4, 4, (*play).deleteRevision},
		{"page kept", 4, 4, (*play).keepPage},
		{"status of a Placement changed by hand", 3, 3, (*play).editPlacement},
		{"a cluster has thousands of claims", 3, 3, (*play).claim},
	}
}

// A day begins with a time in which anything happens. A time follows in which the hub and its manager are well and few
// clusters are away, and so on: judges are strict when nothing was away for a while.
const (
	roughTime = 40 * time.Minute
	calmTime  = 50 * time.Minute
)

// draw draws what happens after a part of a day.
func (p *play) draw(after time.Duration) happening {
	calm := after%(roughTime+calmTime) >= roughTime
	weight := func(h happening) int {
		if calm {
			return h.calm
		}
		return h.rough
	}
	all, total := happenings(), 0
	for _, h := range all {
		total += weight(h)
	}
	drawn := p.IntN(total)
	for _, h := range all {
		if drawn -= weight(h); drawn < 0 {
			return h
		}
	}
	return all[0]
}

// upgrade gives an add-on a new image. It mends one that is bad.
func (p *play) upgrade() { p.setImage(p.addOn(), p.nextImage("v")) }

// badUpgrade gives an add-on an image that does not run everywhere. Mostly people see that and give it another one.
func (p *play) badUpgrade() {
	addOn, bad := p.addOn(), p.nextImage([]string{badImage, sickImage}[p.IntN(2)])
	p.setImage(addOn, bad)
	if p.IntN(4) > 0 {
		p.later(p.between(noticed, 30*time.Minute), func() { p.replaceImage(addOn, bad, p.nextImage("v")) })
	}
}

func (p *play) restartAgent() {
	c, pause := p.some(), p.between(0, 10*time.Minute)
	p.restart(c.agent, c.Name, pause, c.toHub, c.toOwn)
}

func (p *play) restartManager() { p.restart(p.manager, "", p.between(0, 5*time.Minute), p.way) }

// startTime is more than a program takes to start, whose reflectors wait up to a minute after an error. One that is
// stopped before may wait for its own start in a loop of controller-runtime, in which the clock of a bubble stands
// still.
const startTime = 3 * time.Minute

// restart stops a program for a while. Lies that it was told go on when it starts: an older list is a lie of its own to
// a program that knows nothing yet.
func (p *play) restart(one *program, cluster string, pause time.Duration, links ...*link) {
	for _, l := range p.stop(one, cluster, links...) {
		p.lies(cluster, l)
	}
	p.judge.disturb(cluster, time.Now().Add(pause))
	p.later(pause, func() { one.start(p.ctx) })
}

// stop stops a program and returns the links that lied to it, which do no longer.
func (p *play) stop(one *program, cluster string, links ...*link) (lied []*link) {
	for _, l := range links {
		if l.honest() {
			lied = append(lied, l)
		}
	}
	if len(lied) > 0 {
		p.judge.disturb(cluster, time.Now().Add(startTime))
		time.Sleep(startTime)
	}
	one.stop()
	return lied
}

// lies lets a link lie for a while, in a way of its own.
func (p *play) lies(cluster string, l *link) {
	lies, pause := proxy.Draw(p.Uint64()), p.between(time.Second, 20*time.Minute)
	p.options.Log.Info("lies begin", "cluster", cluster, "lies", lies.String(), "for", pause)
	p.judge.disturb(cluster, time.Now().Add(pause))
	l.lie(lies)
	p.later(pause, func() { l.honest() })
}

func (p *play) lieToManager() { p.lies("", p.way) }

func (p *play) lieToAgent() {
	c := p.some()
	p.lies(c.Name, c.toHub)
}

func (p *play) lieOfOwn() {
	c := p.some()
	p.lies(c.Name, c.toOwn)
}

// outage cuts a link for a while.
func (p *play) outage(cluster string, l *link, least, most time.Duration) {
	pause := p.between(least, most)
	p.judge.disturb(cluster, time.Now().Add(pause))
	l.cut()
	p.later(pause, l.mend)
}

func (p *play) cutCluster() {
	c, most := p.some(), 20*time.Minute
	if p.IntN(10) == 0 {
		most = 3 * time.Hour // a certificate may end meanwhile
	}
	p.outage(c.Name, c.toHub, time.Second, most)
}

func (p *play) cutOwn() {
	c := p.some()
	p.outage(c.Name, c.toOwn, time.Second, 10*time.Minute)
}

func (p *play) cutManager() { p.outage("", p.way, time.Second, 10*time.Minute) }

// deployment reads the Deployment of an add-on that was wanted for a while on a cluster that is well; nil otherwise.
func (p *play) deployment(c *Cluster, addOn string) *appsv1.Deployment {
	var d appsv1.Deployment
	err := c.admin.Get(p.ctx, client.ObjectKey{Namespace: names.NamespaceAgentAddon, Name: addOn}, &d)
	if err != nil || !p.judge.want(one{c.Name, addOn}) {
		return nil
	}
	return &d
}

// deleteObject deletes a Deployment, which the agent has to make again.
func (p *play) deleteObject() {
	c, addOn := p.some(), p.addOn()
	d := p.deployment(c, addOn)
	if d == nil {
		return
	}
	p.judge.handed(one{c.Name, addOn})
	if err := c.admin.Delete(p.ctx, d); err != nil {
		p.judge.violated("deleting Deployment %s of %s: %v", addOn, c.Name, err)
	}
	p.expectRepair(c, addOn, "deleted", func(now *appsv1.Deployment) bool { return now != nil })
}

// handImage is the image that people set on a Deployment.
const handImage = "by-hand"

// editObject changes the image of a Deployment, which the agent has to change back.
func (p *play) editObject() {
	c, addOn := p.some(), p.addOn()
	d := p.deployment(c, addOn)
	if d == nil {
		return
	}
	d.Spec.Template.Spec.Containers[0].Image = handImage
	if err := c.admin.Update(p.ctx, d); err != nil {
		p.judge.violated("editing Deployment %s of %s: %v", addOn, c.Name, err)
	}
	p.expectRepair(c, addOn, "edited", func(now *appsv1.Deployment) bool {
		return now != nil && imageOf(now) != handImage
	})
}

// expectRepair looks whether an object is as it was, if nothing kept the agent from repairing it.
func (p *play) expectRepair(c *Cluster, addOn, what string, good func(*appsv1.Deployment) bool) {
	if !p.judge.isCalm(c.Name) {
		return
	}
	time.AfterFunc(repaired, func() {
		if now := p.deployment(c, addOn); !good(now) && p.judge.isCalm(c.Name) {
			if p.judge.want(one{c.Name, addOn}) {
				p.judge.violated("repair: Deployment %s of %s was %s and is not repaired after %s", addOn, c.Name, what, repaired)
			}
		}
	})
}

// toggle takes a cluster out of an add-on, or puts it back; half of the time one that was taken out.
func (p *play) toggle() {
	o, out := one{p.some().Name, p.addOn()}, p.judge.deselected()
	if p.IntN(2) == 0 && len(out) > 0 {
		o = out[p.IntN(len(out))]
	}
	p.toggles(o)
}

func (p *play) toggles(o one) {
	addOn := o.addOn
	if p.isWithdrawn(addOn) {
		return
	}
	wanted := p.judge.want(o)
	if kindOf(addOn) == counted && wanted {
		// Its Placement can choose only while more clusters have the label than it takes.
		out := slices.DeleteFunc(p.judge.deselected(), func(other one) bool { return other.addOn != addOn })
		if len(out) > 0 && len(out) >= len(p.clusters)-countedClusters {
			o, wanted = out[p.IntN(len(out))], false
		}
	}
	p.judge.labels(o, !wanted)
	if kindOf(addOn) != counted || wanted {
		p.judge.wants(o, !wanted)
	}
	p.label(o, !wanted)
	switch {
	case wanted:
		p.expectUninstalled(o)
	case kindOf(addOn) != counted:
		p.expectInstalled(o)
	}
}

// giveUpPlace takes a cluster out of an add-on that some clusters have, and puts it back when another one took its
// place.
func (p *play) giveUpPlace() {
	o := one{p.some().Name, addOnName(int(counted))}
	if !p.judge.want(o) {
		return
	}
	p.toggles(o)
	p.later(p.between(installed, 20*time.Minute), func() {
		if slices.Contains(p.judge.deselected(), o) {
			p.toggles(o)
		}
	})
}

// replacePlacement deletes a Placement and creates it again, as GitOps does when a field may not be changed.
func (p *play) replacePlacement() {
	addOn := p.addOn()
	if kindOf(addOn) == counted {
		return // another Placement may choose other clusters
	}
	p.replacesPlacement(addOn, func() {})
}

// replaceForeign replaces the Placement of another scheduler, which cannot write its decisions for a while.
func (p *play) replaceForeign() {
	p.scheduler.refuseNext()
	p.replacesPlacement(addOnName(int(foreign)), func() {})
}

// replacesPlacement does so and calls between after the deletion.
func (p *play) replacesPlacement(addOn string, between func()) {
	placement := p.placement(addOn)
	if placement == nil {
		return
	}
	p.judge.regroups(addOn)
	if err := p.admin.Delete(p.ctx, placement.DeepCopy()); err != nil {
		p.judge.violated("deleting the Placement of %s: %v", addOn, err)
	}
	between()
	placement.ObjectMeta = metav1.ObjectMeta{
		Namespace: placement.Namespace, Name: placement.Name, Annotations: placement.Annotations,
	}
	placement.Status = clusterv1beta1.PlacementStatus{}
	if err := p.admin.Create(p.ctx, placement); err != nil {
		p.judge.violated("creating the Placement of %s again: %v", addOn, err)
	}
}

// deleteAddOn deletes an add-on of a cluster, which the hub manager has to install again.
func (p *play) deleteAddOn() {
	p.deletesAddOn(one{p.some().Name, p.addOn()})
}

func (p *play) deletesAddOn(o one) {
	p.judge.handed(o)
	p.deleteByHand(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster, Name: o.addOn}})
}

// deleteBinding deletes the RoleBinding of an add-on.
func (p *play) deleteBinding() {
	var found rbacv1.RoleBindingList
	if err := p.admin.List(p.ctx, &found, client.InNamespace(p.some().Name)); err != nil || len(found.Items) == 0 {
		return
	}
	p.deleteByHand(&found.Items[p.IntN(len(found.Items))])
}

// deleteByHand deletes an object of the hub if there is one.
func (p *play) deleteByHand(object client.Object) {
	if err := client.IgnoreNotFound(p.admin.Delete(p.ctx, object)); err != nil {
		p.judge.violated("deleting %T %s: %v", object, client.ObjectKeyFromObject(object), err)
	}
}

// deleteCredential deletes the credential of an add-on on its cluster.
func (p *play) deleteCredential() {
	c, addOn := p.some(), p.addOn()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.NamespaceAgentAddon, Name: credentialOf(addOn),
	}}
	if err := client.IgnoreNotFound(c.admin.Delete(p.ctx, secret)); err != nil {
		p.judge.violated("deleting the credential of %s on %s: %v", addOn, c.Name, err)
	}
}
