package virtual

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/cert"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// settled is how long the fleet may take for what people changed before it counts against it.
	settled = 10 * time.Second
	// repaired is how long an agent may take to undo what happened to an object.
	repaired = 10 * time.Second
	// noticed is how long the hub manager may take to see that an image does not run.
	noticed = 2 * time.Minute
	// installed is how long the hub manager may take to install an add-on on a cluster that is selected.
	installed = 2 * time.Minute
	// gone is how long the removal of an add-on may take, with a hook and outages.
	gone = 50 * time.Minute
	// recovered is how long a cluster may take to be as if nothing had happened, after an outage.
	recovered = 15 * time.Minute
	// mostTold is how many violations are kept.
	mostTold = 50
)

// certificate counts the certificates that are signed.
const certificate = "certificates"

// one names an add-on of a cluster.
type one struct{ cluster, addOn string }

// span is a time.
type span struct{ from, until time.Time }

// judge watches what the API servers show and knows what people asked for.
type judge struct {
	world *World

	mu         sync.Mutex
	violations []string
	more       int
	// wanted are the add-ons that people selected clusters for and since when; unwanted is when they last took one away.
	wanted, unwanted map[one]time.Time
	// unlabelled are the clusters of counted add-ons that people took the label from.
	unlabelled map[one]bool
	// withdrawn are the add-ons whose definition people deleted.
	withdrawn map[string]bool
	// image is the image with which the Deployment of an add-on was last available, next the one that it moves to.
	image, next map[one]string
	// wrote is the number of the image that its work has.
	wrote map[one]int
	// since is when it was told to move.
	since map[one]time.Time
	// regrouped is when people replaced the Placement of an add-on, whose clusters may be in other groups since.
	regrouped map[string]time.Time
	// reached is when it became available with its image, and fell when it was not any more, while it soaked.
	reached, fell map[one]time.Time
	// progress is the reason of Progressing of an add-on.
	progress map[one]string
	// going are the add-ons that are being deleted.
	going map[one]bool
	// goingSince is when it was first seen so.
	goingSince map[one]time.Time
	// expires is when the certificate of an add-on ends.
	expires map[one]time.Time
	// disturbed are the outages of a cluster, one of which follows the other; that of the hub has no name.
	disturbed map[string]span
	counts    map[string]int
}

func newJudge(w *World) *judge {
	return &judge{
		world: w, wanted: map[one]time.Time{}, unwanted: map[one]time.Time{}, unlabelled: map[one]bool{},
		withdrawn: map[string]bool{}, image: map[one]string{}, next: map[one]string{}, wrote: map[one]int{},
		since: map[one]time.Time{}, regrouped: map[string]time.Time{}, reached: map[one]time.Time{},
		fell: map[one]time.Time{}, progress: map[one]string{},
		going: map[one]bool{}, goingSince: map[one]time.Time{}, expires: map[one]time.Time{}, disturbed: map[string]span{},
		counts: map[string]int{},
	}
}

// start follows the API servers.
func (j *judge) start() {
	w := j.world
	go follow(w.ctx, w.admin, &addonv1alpha1.ManagedClusterAddOnList{}, j.addOn)
	go follow(w.ctx, w.admin, &workv1.ManifestWorkList{}, j.work)
	go follow(w.ctx, w.admin, &clusterv1beta1.PlacementDecisionList{}, j.page)
	for _, c := range w.clusters {
		go follow(w.ctx, c.admin, &appsv1.DeploymentList{}, func(kind watch.EventType, d *appsv1.Deployment) {
			j.deployment(kind, one{c.Name, d.Name}, d)
		})
		go follow(w.ctx, c.admin, &corev1.SecretList{}, func(kind watch.EventType, s *corev1.Secret) {
			j.secret(kind, c.Name, s)
		}, client.InNamespace(names.NamespaceAgentAddon))
	}
	go j.tick()
}

// violated notes what must never happen.
func (j *judge) violated(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tell(format, args...)
}

func (j *judge) tell(format string, args ...any) {
	if len(j.violations) == mostTold {
		j.more++
		return
	}
	j.violations = append(j.violations, time.Now().Format(time.TimeOnly)+" "+fmt.Sprintf(format, args...))
}

// ended notes a program of a cluster, or of the hub, that ended by itself: it may when it starts during an outage.
func (j *judge) ended(cluster string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts["programs ended"]++
	if j.calm(cluster, settled) {
		j.tell("%v", err)
	}
}

// loops returns what notes a request that a program sends again and again.
func (j *judge) loops(program string) func(string) {
	return func(request string) { j.violated("loop: %s sends %s again and again at one instant", program, request) }
}

// found returns what happened that must not.
func (j *judge) found() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := slices.Clone(j.violations)
	if j.more > 0 {
		all = append(all, fmt.Sprintf("and %d more", j.more))
	}
	return all
}

// count counts what happened.
func (j *judge) count(what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts[what]++
}

// counted returns what happened how often.
func (j *judge) counted() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.counts)
}

// wants notes that people selected a cluster for an add-on, or no longer do.
func (j *judge) wants(o one, selected bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if selected {
		j.wanted[o] = time.Now()
		return
	}
	delete(j.wanted, o)
	j.unwanted[o] = time.Now()
}

// labels notes that people set the label of a counted add-on, or took it away.
func (j *judge) labels(o one, set bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.unlabelled[o] = !set
}

// withdraws notes that people delete the definition of an add-on, or write it again.
func (j *judge) withdraws(addOn string, gone bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.withdrawn[addOn] = gone
}

// regroups notes that people replace the Placement of an add-on.
func (j *judge) regroups(addOn string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.regrouped[addOn] = time.Now()
}

// handed notes that people delete what belongs to an add-on that they want.
func (j *judge) handed(o one) {
	if j.want(o) {
		j.wants(o, false)
		j.wants(o, true)
	}
}

// want reports whether an add-on is wanted.
func (j *judge) want(o one) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, wanted := j.wanted[o]
	return wanted
}

// selects reports whether people want an add-on, or its Placement may choose its cluster.
func (j *judge) selects(o one) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, wanted := j.wanted[o]
	return wanted || (kindOf(o.addOn) == counted && !j.unlabelled[o])
}

// wantsSome reports whether any cluster has an add-on that people have wanted for a while.
func (j *judge) wantsSome(addOn string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for o := range j.wanted {
		if o.addOn == addOn && j.isWanted(o) {
			return true
		}
	}
	return false
}

// isWanted reports whether people have wanted an add-on for a while.
func (j *judge) isWanted(o one) bool {
	since, wanted := j.wanted[o]
	return wanted && time.Since(since) > settled
}

// disturb notes an outage of a cluster, or of the hub, that lasts until a time.
func (j *judge) disturb(cluster string, until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	was := j.disturbed[cluster]
	if time.Since(was.until) > recovered {
		was.from = time.Now()
	}
	if until.After(was.until) {
		was.until = until
	}
	j.disturbed[cluster] = was
}

// calm reports whether neither a cluster nor the hub had an outage for a while.
func (j *judge) calm(cluster string, pause time.Duration) bool {
	now := time.Now()
	return now.Sub(j.disturbed[cluster].until) > pause && now.Sub(j.disturbed[""].until) > pause
}

// isCalm reports whether a cluster had no outage for a while.
func (j *judge) isCalm(cluster string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.calm(cluster, recovered)
}

// deselected returns the add-ons of clusters that people took away, by name.
func (j *judge) deselected() []one {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []one
	for o := range j.unwanted {
		if _, wanted := j.wanted[o]; !wanted && (kindOf(o.addOn) != counted || j.unlabelled[o]) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b one) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.addOn, b.addOn))
	})
	return all
}

// unseen reports whether a cluster may see only now that an add-on was taken away once: there was an outage then, which
// is not long over.
func (j *judge) unseen(o one) bool {
	taken, ever := j.unwanted[o]
	during := func(s span) bool {
		// After an outage a watch may begin a minute later.
		return s.from.Before(taken.Add(settled)) && s.until.Add(startTime).After(taken) && time.Since(s.until) < recovered
	}
	return ever && (during(j.disturbed[o.cluster]) || during(j.disturbed[""]))
}

// addOn judges what happens to a ManagedClusterAddOn.
func (j *judge) addOn(kind watch.EventType, a *addonv1alpha1.ManagedClusterAddOn) {
	j.mu.Lock()
	defer j.mu.Unlock()
	o := one{a.Namespace, a.Name}
	isGone := kind == watch.Deleted // one without finalizers goes at once
	if isGone && j.going[o] {
		delete(j.goingSince, o)
		// What goes with it on the cluster at this instant may be seen later.
		time.AfterFunc(time.Second, func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			delete(j.going, o)
		})
		return
	}
	j.progresses(o, a)
	if (isGone || a.DeletionTimestamp != nil) && !j.going[o] {
		if !isGone {
			j.going[o], j.goingSince[o] = true, time.Now()
		}
		j.counts["add-ons removed"]++
		if !j.isWanted(o) {
			j.unwanted[o] = time.Now() // Another scheduler takes its time for what people took away.
		}
		// What our placement decides is confirmed by the API server, whatever the hub manager sees.
		if j.isWanted(o) && (kindOf(o.addOn) != foreign || !j.unseen(o)) {
			j.tell("selected-stays: the add-on %s of %s is being deleted; it has been selected since %s",
				o.addOn, o.cluster, j.wanted[o].Format(time.TimeOnly))
		}
	}
}

// page learns from a PlacementDecision which clusters the Placement of a counted add-on chose.
func (j *judge) page(kind watch.EventType, page *clusterv1beta1.PlacementDecision) {
	addOn := page.Labels[clusterv1beta1.PlacementLabel]
	j.mu.Lock()
	defer j.mu.Unlock()
	if kind == watch.Deleted || kindOf(addOn) != counted || j.withdrawn[addOn] {
		return
	}
	for _, decision := range page.Status.Decisions {
		o := one{decision.ClusterName, addOn}
		if _, wanted := j.wanted[o]; !wanted && !j.unlabelled[o] {
			j.wanted[o] = time.Now()
		}
	}
}

// deployment judges what happens to the Deployment of an add-on.
func (j *judge) deployment(kind watch.EventType, o one, d *appsv1.Deployment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if kind == watch.Deleted {
		// That of an add-on that goes is judged when that begins: its hook may take a while.
		if j.isWanted(o) && !j.unseen(o) && !j.going[o] {
			j.tell("nothing-taken: the Deployment %s of %s was deleted; it has been selected since %s",
				o.addOn, o.cluster, j.wanted[o].Format(time.TimeOnly))
		}
		if j.going[o] || !j.isWanted(o) { // One that comes again is new, also if this one was broken or soaked.
			delete(j.next, o)
			delete(j.fell, o)
			delete(j.reached, o)
		}
		return
	}
	s := d.Status
	available := s.ObservedGeneration == d.Generation && s.AvailableReplicas > 0 && s.Replicas == s.UpdatedReplicas
	j.moves(o, imageOf(d), available)
}

// progresses judges what an add-on says about its progress: it is not complete while no pod of its version is ready.
func (j *judge) progresses(o one, a *addonv1alpha1.ManagedClusterAddOn) {
	before, now := j.progress[o], ""
	c := meta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionProgressing)
	if c != nil {
		now = c.Reason
	}
	j.progress[o] = now
	image, moving := j.next[o]
	if now != addonv1alpha1.ProgressingReasonCompleted || before == now || !moving {
		return
	}
	// What happens on the hub and on the cluster at the same instant is seen one after the other.
	since := j.since[o]
	time.AfterFunc(time.Second, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.next[o] == image && j.since[o].Equal(since) && j.isWanted(o) && j.calm(o.cluster, recovered) {
			j.tell("told-truly: the add-on %s of %s is said to be complete, and no pod runs with %s",
				o.addOn, o.cluster, image)
		}
	})
}

// secret notes when the certificate of an add-on ends.
func (j *judge) secret(kind watch.EventType, cluster string, s *corev1.Secret) {
	o := one{cluster, s.Name}
	data := s.Data[corev1.TLSCertKey]
	j.mu.Lock()
	defer j.mu.Unlock()
	if kind == watch.Deleted || len(data) == 0 {
		delete(j.expires, o)
		return
	}
	certificates, err := cert.ParseCertsPEM(data)
	if err != nil {
		j.tell("the certificate in Secret %s of %s: %v", s.Name, cluster, err)
		return
	}
	j.expires[o] = certificates[0].NotAfter.Add(-j.world.skews[cluster])
}

// saidOf holds what the hub says of an add-on that does not go.
func (w *World) saidOf(o one) string {
	var addOn addonv1alpha1.ManagedClusterAddOn
	if err := w.admin.Get(w.ctx, client.ObjectKey{Namespace: o.cluster, Name: o.addOn}, &addOn); err != nil {
		return ": " + err.Error()
	}
	text := fmt.Sprintf(", kept by %v", addOn.Finalizers)
	for _, c := range addOn.Status.Conditions {
		text += fmt.Sprintf("; %s is %s: %s", c.Type, c.Status, c.Message)
	}
	return text
}

// tick judges what time alone changes.
func (j *judge) tick() {
	for {
		select {
		case <-j.world.ctx.Done():
			return
		case <-time.After(time.Minute):
		}
		j.mu.Lock()
		now := time.Now()
		for o, end := range j.expires {
			if now.After(end) && j.calm(o.cluster, recovered) {
				j.tell("never-expired: the certificate in Secret %s of %s ended at %s",
					o.addOn, o.cluster, end.Format(time.TimeOnly))
				delete(j.expires, o)
			}
		}
		for o, since := range j.goingSince {
			if now.Sub(since) > gone && j.calm(o.cluster, noticed) {
				j.tell("removal-ends: the add-on %s of %s is being deleted since %s%s",
					o.addOn, o.cluster, since.Format(time.TimeOnly), j.world.saidOf(o))
				delete(j.goingSince, o)
			}
		}
		j.mu.Unlock()
	}
}
