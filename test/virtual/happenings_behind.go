package virtual

import (
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/util/retry"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seen are the kinds of which the hub manager may see an earlier state, alone or together: each of its watches goes to
// an API server of its own when a hub has several.
func seen() [][]string {
	return [][]string{
		{"managedclusters"}, {"placements"}, {"placementdecisions"}, {"clustermanagementaddons"}, {"managedclusteraddons"},
		{"manifestworks"}, {"managedclusters", "placementdecisions"}, {"placements", "placementdecisions"},
		{"managedclusters", "placements", "placementdecisions", "clustermanagementaddons", "managedclusteraddons"},
	}
}

// change is something that people do in two steps, or that happens so. What is wanted before is wanted after it.
type change struct {
	name string
	do   func(p *play, o one, between func())
	// before comes before it; nil means nothing.
	before func(p *play, o one)
	// kinds may be behind; nil means those of seen.
	kinds [][]string
	// keeps is set where a counted add-on stays on its clusters; otherwise the Placement may choose others.
	keeps bool
}

// images are those of the image of an add-on.
func images() []change {
	templates := [][]string{{"addontemplates"}}
	return []change{
		{name: "people change an image", kinds: templates, keeps: true, do: (*play).setNextImage},
		{name: "people change an image twice", kinds: templates, keeps: true,
			do: func(p *play, o one, between func()) {
				p.setNextImage(o, func() {})
				p.setNextImage(o, between)
			}},
	}
}

func changes() []change {
	return []change{
		{name: "a cluster is deselected and selected", do: (*play).flip},
		{name: "a Placement is replaced", do: func(p *play, o one, between func()) { p.replacesPlacement(o.addOn, between) }},
		{name: "a definition is replaced", do: (*play).redefine},
		{name: "another label selects", do: (*play).selectOtherwise, keeps: true},
		{name: "a cluster comes back", keeps: true, before: (*play).goAway, do: func(p *play, o one, between func()) {
			between()
			p.byName[o.cluster].toHub.mend()
		}},
		{name: "an add-on is deleted", do: func(p *play, o one, between func()) { p.deletesAddOn(o); between() }},
	}
}

// fallBehind lets the hub manager see some kinds for a while as they are in the middle of a change: by its watches, by
// the lists with which it starts, or by those with which it starts again when it has seen all of it.
func (p *play) fallBehind() {
	o, all := p.wanted(), [][]change{changes(), changes(), images()}[p.IntN(3)]
	if kindOf(o.addOn) == counted {
		all = slices.DeleteFunc(all, func(c change) bool { return !c.keeps })
	}
	change, starts, again := all[p.IntN(len(all))], p.IntN(3) > 0, p.IntN(2) == 0
	kinds := seen()
	if change.kinds != nil {
		kinds = change.kinds
	}
	in := kinds[p.IntN(len(kinds))]
	pause, after := p.between(time.Second, 10*time.Minute), p.between(0, 20*time.Second)
	before := p.between(0, 4*time.Second)
	if !p.judge.want(o) || p.isWithdrawn(o.addOn) {
		return
	}
	p.options.Log.Info("the hub manager falls behind", "in", in, "change", change.name, "cluster", o.cluster,
		"addOn", o.addOn, "starts", starts, "again", again, "for", pause)
	if change.before != nil {
		change.before(p, o)
	}
	p.judge.disturb("", time.Now().Add(startTime))
	if starts && !again {
		p.stop(p.manager, "", p.way)
	}
	version := ""
	var end func()
	change.do(p, o, func() {
		version = p.version()
		if !starts {
			time.Sleep(before)
			end = p.showEarlier(version, in)
		}
	})
	if version == "" { // there was nothing to change
		p.manager.start(p.ctx)
		return
	}
	time.Sleep(after)
	if starts && again {
		p.stop(p.manager, "", p.way)
	}
	if starts {
		end = p.showEarlier(version, in)
	}
	p.judge.disturb("", time.Now().Add(pause))
	p.manager.start(p.ctx)
	p.later(pause, end)
}

// wanted draws an add-on that people want on a cluster, if it finds one.
func (p *play) wanted() one {
	o := one{p.some().Name, p.addOn()}
	for range 20 {
		if p.judge.want(o) && !p.isWithdrawn(o.addOn) {
			break
		}
		o = one{p.some().Name, p.addOn()}
	}
	return o
}

// showEarlier shows the hub manager some kinds as they were in a version, until the end of that is called.
func (p *play) showEarlier(version string, kinds []string) (end func()) {
	end = p.way.suffer(showsEarlier(version, func(r *http.Request) bool {
		_, resource, _ := about(r)
		return slices.Contains(kinds, resource)
	}))
	p.way.reconnect()
	return end
}

// setNextImage gives an add-on a new image.
func (p *play) setNextImage(o one, between func()) {
	between()
	p.setImage(o.addOn, p.nextImage("v"))
}

// version is the present version of the hub.
func (p *play) version() string {
	var clusters clusterv1.ManagedClusterList
	if err := p.admin.List(p.ctx, &clusters); err != nil {
		p.judge.violated("asking for the version of the hub: %v", err)
	}
	return clusters.ResourceVersion
}

// flip deselects a cluster and selects it again.
func (p *play) flip(o one, between func()) {
	p.judge.wants(o, false)
	p.label(o, false)
	between()
	p.judge.wants(o, true)
	p.label(o, true)
}

// label sets or removes the label of a cluster that selects it for an add-on.
func (p *play) label(o one, selected bool) {
	p.options.Log.Info("people label a cluster", "cluster", o.cluster, "addOn", o.addOn, "selected", selected)
	err := p.editCluster(o.cluster, func(cluster *clusterv1.ManagedCluster) { setLabel(cluster, o.addOn, selected) })
	if err != nil {
		p.judge.violated("changing the labels of %s: %v", o.cluster, err)
	}
}

// redefine deletes the definition of an add-on and creates it again.
func (p *play) redefine(o one, between func()) {
	p.withdraws(o.addOn)
	between()
	p.offer(o.addOn)
}

// goAway cuts a cluster off until it is unavailable.
func (p *play) goAway(o one) {
	c := p.byName[o.cluster]
	p.judge.disturb(c.Name, time.Now().Add(unavailable+startTime))
	c.toHub.cut()
	time.Sleep(unavailable)
}

// unavailable is how long a cluster is away before it counts as unavailable, and more.
const unavailable = 8 * time.Minute

// relabel lets another label select a cluster for an add-on.
func (p *play) relabel() {
	o := one{p.some().Name, p.addOn()}
	if p.judge.want(o) && !p.isWithdrawn(o.addOn) {
		p.selectOtherwise(o, func() {})
	}
}

// selectOtherwise does so: the Placement is edited first, and then the cluster. Where the Placement has that label, all
// clusters get the usual one first, and then the Placement is edited. Another scheduler knows one label only.
func (p *play) selectOtherwise(o one, between func()) {
	placement := p.placement(o.addOn)
	if placement == nil || kindOf(o.addOn) == foreign {
		return
	}
	if len(placement.Spec.Predicates) == 1 {
		p.editPredicates(o.addOn, func(all []clusterv1beta1.ClusterPredicate) []clusterv1beta1.ClusterPredicate {
			return append(all[:1], labelled(otherLabelOf(o.addOn)))
		})
		between()
		err := p.editCluster(o.cluster, func(cluster *clusterv1.ManagedCluster) {
			delete(cluster.Labels, labelOf(o.addOn))
			cluster.Labels[otherLabelOf(o.addOn)] = "yes"
		})
		if err != nil {
			p.judge.violated("changing the labels of %s: %v", o.cluster, err)
		}
		return
	}
	var clusters clusterv1.ManagedClusterList
	if err := p.admin.List(p.ctx, &clusters, client.HasLabels{otherLabelOf(o.addOn)}); err != nil {
		p.judge.violated("listing clusters: %v", err)
	}
	for i := range clusters.Items {
		p.label(one{clusters.Items[i].Name, o.addOn}, true)
	}
	between()
	p.editPredicates(o.addOn, func(all []clusterv1beta1.ClusterPredicate) []clusterv1beta1.ClusterPredicate {
		return all[:1]
	})
}

func (p *play) editPredicates(
	addOn string, edit func([]clusterv1beta1.ClusterPredicate) []clusterv1beta1.ClusterPredicate,
) {
	p.editSpec(addOn, func(spec *clusterv1beta1.PlacementSpec) { spec.Predicates = edit(spec.Predicates) })
}

// editSpec changes the spec of the Placement of an add-on.
func (p *play) editSpec(addOn string, edit func(*clusterv1beta1.PlacementSpec)) {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var placement clusterv1beta1.Placement
		if err := p.admin.Get(p.ctx, client.ObjectKey{Namespace: space, Name: addOn}, &placement); err != nil {
			return client.IgnoreNotFound(err) // it is being replaced, by one that is as it was
		}
		edit(&placement.Spec)
		return p.admin.Update(p.ctx, &placement)
	})
	if err != nil {
		p.judge.violated("editing the Placement of %s: %v", addOn, err)
	}
}

// placement reads the Placement of an add-on; nil where there is none.
func (p *play) placement(addOn string) *clusterv1beta1.Placement {
	var placement clusterv1beta1.Placement
	if err := p.admin.Get(p.ctx, client.ObjectKey{Namespace: space, Name: addOn}, &placement); err != nil {
		return nil
	}
	return &placement
}

// toggleSome takes several clusters out of an add-on and puts others back, within a second.
func (p *play) toggleSome() {
	addOn := p.addOn()
	for range 2 + p.IntN(4) {
		p.toggles(one{p.some().Name, addOn})
		time.Sleep(time.Duration(p.Int64N(int64(200 * time.Millisecond))))
	}
}

// tolerate adds a toleration to a Placement of another scheduler while a cluster is away, so that it keeps its add-on.
// The scheduler does not run then.
func (p *play) tolerate() {
	o := one{p.some().Name, addOnName(int(foreign))}
	if !p.judge.want(o) || p.isWithdrawn(o.addOn) {
		return
	}
	p.goAway(o)
	p.scheduler.hold(p.between(time.Second, away))
	p.editSpec(o.addOn, func(spec *clusterv1beta1.PlacementSpec) { spec.Tolerations = toleratesAll() })
	time.Sleep(p.between(time.Second, away))
	p.byName[o.cluster].toHub.mend()
	p.later(p.between(time.Minute, 20*time.Minute), func() {
		p.editSpec(o.addOn, func(spec *clusterv1beta1.PlacementSpec) { spec.Tolerations = nil })
	})
}

// takeBack deselects all clusters of an add-on by an edit of its Placement, and takes that back while the add-ons are
// removed, for each of which the hub takes its time.
func (p *play) takeBack() {
	addOn := p.addOn()
	if kindOf(addOn) == foreign || kindOf(addOn) == counted || p.isWithdrawn(addOn) {
		return
	}
	var dropped []one
	for _, c := range p.clusters {
		if o := (one{c.Name, addOn}); p.judge.want(o) {
			p.judge.wants(o, false)
			dropped = append(dropped, o)
		}
	}
	end := p.way.suffer(hangs(4*time.Second, concerns("managedclusteraddons", "delete")))
	var before []clusterv1beta1.ClusterPredicate
	p.editPredicates(addOn, func(all []clusterv1beta1.ClusterPredicate) []clusterv1beta1.ClusterPredicate {
		before = all
		return []clusterv1beta1.ClusterPredicate{labelled("nobody.example.com/has-it")}
	})
	time.Sleep(p.between(time.Second, 20*time.Second))
	p.editPredicates(addOn, func([]clusterv1beta1.ClusterPredicate) []clusterv1beta1.ClusterPredicate { return before })
	for _, o := range dropped {
		p.judge.wants(o, true)
	}
	p.later(2*time.Minute, end)
}
