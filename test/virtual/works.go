package virtual

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fleet is a world whose clusters have works that people write, and one add-on.
type fleet struct {
	*World

	members []*member

	mu sync.Mutex
	// secrets are texts that only Secrets may have.
	secrets []string
}

// scene is a scenario on a cluster.
type scene struct {
	*fleet
	*member
	*rand.Rand

	name string
}

// scenario is something that happens to the works of a cluster, one after the other.
type scenario struct {
	name string
	fits func(*member) bool
	play func(*scene)
}

// worksAddOn is the add-on of all clusters with works.
const worksAddOn = "addon-00"

// shapes are the clusters of a fleet with works.
func shapes() []shape {
	return []shape{
		{name: "plain-0", works: 3}, {name: "plain-1", works: 3}, {name: "crowd", works: 3},
		{name: "hosted", works: 2, hosted: true}, {name: "alone", works: 2, hosted: true, alone: true},
		{name: "hubs", works: 2, hubs: true}, {name: "odd", works: 3, odd: true},
	}
}

// newFleet prepares a fleet.
func newFleet(ctx context.Context, o Options) (*fleet, error) {
	o.Clusters = 0
	w, err := New(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := eventsv1.AddToScheme(w.scheme); err != nil {
		return nil, err
	}
	f := &fleet{World: w}
	for _, s := range shapes() {
		m, err := w.addMember(s)
		if err != nil {
			return nil, err
		}
		f.members = append(f.members, m)
	}
	return f, nil
}

// run plays scenarios: all of them, each on a cluster that it fits, in an order that a seed draws. only selects some by
// their names.
func (f *fleet) run(ctx context.Context, seed uint64, only func(string) bool) ([]string, error) {
	random := rand.New(rand.NewPCG(seed, 2027))
	if err := f.begin(); err != nil {
		return nil, err
	}
	plays := map[*member][]scenario{}
	for _, s := range scenarios() {
		if !only(s.name) {
			continue
		}
		var fitting []*member
		for _, m := range f.members {
			if s.fits(m) {
				fitting = append(fitting, m)
			}
		}
		m := fitting[random.IntN(len(fitting))]
		plays[m] = append(plays[m], s)
	}
	var all sync.WaitGroup
	for _, m := range f.members {
		list, draws := plays[m], rand.New(rand.NewPCG(seed, uint64(mixed(m.Name))))
		draws.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		all.Go(func() {
			for _, one := range list {
				if ctx.Err() != nil || len(f.judge.found()) > 0 {
					return
				}
				f.judge.count(one.name)
				f.options.Log.Info("happens", "what", one.name, "cluster", m.Name)
				s := &scene{fleet: f, member: m, Rand: draws, name: one.name}
				one.play(s)
				s.agrees("afterwards")
			}
		})
	}
	all.Wait()
	if wrong := f.judge.found(); len(wrong) > 0 {
		return wrong, nil // what comes after it may follow from it
	}
	if only("the hub is restored") {
		f.restoreHub()
	}
	f.conclude()
	return f.judge.found(), nil
}

// stop ends all programs.
func (f *fleet) stop() {
	for _, m := range f.members {
		if m.worker != nil {
			m.worker.stop()
		}
	}
	f.Stop()
}

// begin starts everything and waits until all works are applied and all clusters have the add-on.
func (f *fleet) begin() error {
	if err := create(f.ctx, f.admin, addOnObjects(worksAddOn, "v0")...); err != nil {
		return err
	}
	f.Start()
	go follow(f.ctx, f.admin, &workv1.ManifestWorkList{}, f.workChanged)
	go follow(f.ctx, f.admin, &eventsv1.EventList{}, func(_ watch.EventType, e *eventsv1.Event) {
		f.keepsSecrets("Event "+e.Reason, e)
	})
	for _, m := range f.members {
		if m.worker != nil {
			m.worker.start(f.ctx)
		}
		f.watch(m)
	}
	return f.untilNone(30*time.Minute, func() []string {
		var left []string
		for _, m := range f.members {
			left = append(left, f.enroll(m)...)
		}
		return left
	})
}

// enroll selects a cluster for the add-on and writes its works once it has joined, and returns what is missing still.
func (f *fleet) enroll(m *member) []string {
	key := client.ObjectKey{Name: m.Name}
	var cluster clusterv1.ManagedCluster
	if err := f.admin.Get(f.ctx, key, &cluster); err != nil {
		return []string{m.Name + " has not joined"}
	}
	if len(m.model.all()) == 0 {
		setLabel(&cluster, worksAddOn, true)
		f.judge.wants(one{m.Name, worksAddOn}, true)
		if err := f.admin.Update(f.ctx, &cluster); err != nil {
			return []string{err.Error()}
		}
		for i := range m.works {
			u := newUserWork(fmt.Sprint("shop-", i))
			u.feedback = i == 0
			f.put(m, u)
		}
	}
	return f.differencesOf(m)
}

// worksPatience is how long a cluster may take until everything agrees with the works.
const worksPatience = 15 * time.Minute

// untilNone waits until nothing is left to be said.
func (f *fleet) untilNone(most time.Duration, left func() []string) error {
	for end := time.Now().Add(most); ; time.Sleep(5 * time.Second) {
		said := left()
		if len(said) == 0 || len(f.judge.found()) > 0 { // what comes after the first violation may follow from it
			return nil
		}
		if time.Now().After(end) || f.ctx.Err() != nil {
			return fmt.Errorf("after %s there are %d differences, such as %v", most, len(said), said[:min(3, len(said))])
		}
	}
}

// agrees waits until all of the cluster of a scene is as people wrote it.
func (s *scene) agrees(when string) {
	if err := s.untilNone(worksPatience, func() []string { return s.differencesOf(s.member) }); err != nil {
		s.wrong("comes-back: %s: %v", when, err)
	}
}

// within waits until check has nothing to say.
func (s *scene) within(most time.Duration, what string, check func() string) {
	if err := s.untilNone(most, func() []string {
		if text := check(); text != "" {
			return []string{text}
		}
		return nil
	}); err != nil {
		s.wrong("%s: %v", what, err)
	}
}

// wrong notes what must not be.
func (s *scene) wrong(format string, args ...any) {
	s.judge.violated("%s (%s on %s)", fmt.Sprintf(format, args...), s.name, s.Name)
}

// pause waits for a time, or until something is violated, and reports whether the scenario goes on.
func (s *scene) pause(d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(min(5*time.Second, time.Until(end))) {
		if len(s.judge.found()) > 0 {
			return false
		}
	}
	return len(s.judge.found()) == 0
}

// must notes an error of what people do.
func (s *scene) must(err error) {
	if err != nil {
		s.wrong("what people do fails: %v", err)
	}
}

// onHub and onOwn are clients of who may do everything on the hub, and on the cluster.
func (s *scene) onHub() client.WithWatch { return s.fleet.admin }
func (s *scene) onOwn() client.WithWatch { return s.member.admin }

// disturb notes that the cluster of a scene is disturbed for a while.
func (s *scene) disturb(d time.Duration) { s.judge.disturb(s.Name, time.Now().Add(d)) }

// get reads a thing on a cluster; nil when it does not exist.
func (f *fleet) get(m *member, t thing) *unstructured.Unstructured {
	o := t.object()
	if err := m.admin.Get(f.ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return nil
	}
	return o
}

// put writes a work as it is wanted.
func (f *fleet) put(m *member, u *userWork) {
	m.model.set(u)
	f.write(m, u, nil)
}

// write writes a ManifestWork, with an edit of its manifests.
func (f *fleet) write(m *member, u *userWork, edit func(t thing, manifest map[string]any)) {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: m.Name, Name: u.name}}
	err := retry.OnError(retry.DefaultBackoff, func(error) bool { return true }, func() error {
		err := f.admin.Get(f.ctx, client.ObjectKeyFromObject(w), w)
		if w.Spec = u.spec(edit); apierrors.IsNotFound(err) {
			w.ResourceVersion, w.UID = "", ""
			return f.admin.Create(f.ctx, w)
		}
		if err != nil {
			return err
		}
		return f.admin.Update(f.ctx, w)
	})
	if err != nil {
		f.judge.violated("writing work %s of %s: %v", u.name, m.Name, err)
	}
}

// remove deletes a work, which its agent lets go when its things are gone.
func (s *scene) remove(u *userWork) {
	s.model.unset(u)
	s.must(s.onHub().Delete(s.ctx, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: s.Name, Name: u.name}}))
}

// vanish takes a work from the hub without its agent, as a hub does that comes back from a backup without it.
func (s *scene) vanish(u *userWork) {
	key := client.ObjectKey{Namespace: s.Name, Name: u.name}
	s.must(retry.OnError(retry.DefaultBackoff, apierrors.IsConflict, func() error {
		var w workv1.ManifestWork
		if err := s.onHub().Get(s.ctx, key, &w); err != nil {
			return err
		}
		w.Finalizers = nil
		if err := s.onHub().Update(s.ctx, &w); err != nil {
			return err
		}
		return s.onHub().Delete(s.ctx, &w, client.Preconditions{ResourceVersion: &w.ResourceVersion})
	}))
}

// work reads a work on the hub; nil when there is none.
func (f *fleet) work(m *member, name string) *workv1.ManifestWork {
	var w workv1.ManifestWork
	if err := f.admin.Get(f.ctx, client.ObjectKey{Namespace: m.Name, Name: name}, &w); err != nil {
		return nil
	}
	return &w
}

// unreported returns how the status of a work is not that of a work that is applied; empty when it is.
func (f *fleet) unreported(m *member, name string) string {
	w := f.work(m, name)
	if w == nil {
		return "work " + name + " does not exist"
	}
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkApplied)
	switch {
	case applied == nil:
		return "work " + name + " is not applied"
	case applied.Status != metav1.ConditionTrue || applied.ObservedGeneration != w.Generation:
		return fmt.Sprintf("work %s: Applied is %s at %d of %d: %s", name, applied.Status, applied.ObservedGeneration,
			w.Generation, applied.Message)
	}
	return ""
}

// differencesOf returns what is not as people wrote it on a cluster.
func (f *fleet) differencesOf(m *member) []string {
	var all []string
	tell := func(format string, args ...any) {
		all = append(all, fmt.Sprintf("%s: %s", m.Name, fmt.Sprintf(format, args...)))
	}
	var cluster clusterv1.ManagedCluster
	if err := f.admin.Get(f.ctx, client.ObjectKey{Name: m.Name}, &cluster); err != nil {
		tell("%v", err)
	} else if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable) {
		tell("it is not available: %v", cluster.Status.Conditions)
	}
	for _, u := range m.model.all() {
		if text := f.unreported(m, u.name); text != "" {
			tell("%s", text)
		}
		for _, t := range u.all() {
			if text := u.differs(t, f.get(m, t)); text != "" {
				tell("%v: %s", t, text)
			}
		}
	}
	var addOn addonv1alpha1.ManagedClusterAddOn
	if err := f.admin.Get(f.ctx, client.ObjectKey{Namespace: m.Name, Name: worksAddOn}, &addOn); err != nil {
		tell("%v", err)
	} else if !meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionAvailable) {
		tell("its add-on is not available: %v", addOn.Status.Conditions)
	}
	return append(all, f.withoutCredential(m, worksAddOn)...)
}
