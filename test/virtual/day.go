package virtual

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Day holds what happens to a World.
type Day struct {
	// Seed decides what happens and when.
	Seed uint64
	// Lasts is how long things happen, and PerHour how many in an hour.
	Lasts   time.Duration
	PerHour int
}

// play is a day under way.
type play struct {
	*World
	*rand.Rand

	scheduler *scheduler
	end       time.Time
	// configured are the add-ons that were given a configuration of their own, in the order in which they were.
	configured []one

	// editing has room for one who changes a template: timers do, too.
	editing chan struct{}

	// What follows is changed by timers, too.
	mu sync.Mutex
	// images are the images of the add-ons, versions how many people have chosen.
	images   map[string]string
	versions int
	// withdrawn are the add-ons whose definition is deleted at this time, with the clusters that are selected.
	withdrawn map[string][]string
}

// Run lets a day happen: all clusters join and get all add-ons, then things happen, then all is mended. It returns what
// was violated, and what is still different when the fleet had its time.
func (w *World) Run(ctx context.Context, d Day) ([]string, error) {
	p := &play{
		World: w, Rand: rand.New(rand.NewPCG(d.Seed, 2026)), images: map[string]string{},
		withdrawn: map[string][]string{}, editing: make(chan struct{}, 1), scheduler: newScheduler(w, d.Seed),
	}
	if err := p.begin(); err != nil {
		return nil, err
	}
	began := time.Now()
	p.end = began.Add(d.Lasts)
	p.routine(d.Lasts)
	for ctx.Err() == nil {
		pause := time.Duration(p.ExpFloat64() * float64(time.Hour) / float64(d.PerHour))
		if time.Now().Add(pause).After(p.end) {
			break
		}
		time.Sleep(pause)
		if found := w.judge.found(); len(found) > 0 {
			return found, nil // what follows from it tells nothing more
		}
		h := p.draw(time.Since(began))
		w.judge.count(h.name)
		w.options.Log.Info("happens", "what", h.name)
		h.do(p)
	}
	time.Sleep(time.Until(p.end))
	p.mend()
	return p.conclude()
}

// wrongClocks are by how much the clocks of some agents are off, which shows in what they say of their clusters.
var wrongClocks = map[int]time.Duration{1: -2 * time.Hour, 3: 2 * time.Hour}

// begin makes the add-ons, waits until all clusters joined, and selects all of them for all add-ons.
func (p *play) begin() error {
	for i := range p.options.AddOns {
		name := addOnName(i)
		p.images[name] = "v0"
		if err := create(p.ctx, p.admin, template(name, "v0"), placementOf(name)); err != nil {
			return err
		}
	}
	p.scheduler.start()
	p.Start()
	if err := p.until(30*time.Minute, func() ([]string, error) {
		var clusters clusterv1.ManagedClusterList
		if err := p.admin.List(p.ctx, &clusters); err != nil {
			return nil, fmt.Errorf("listing clusters: %w", err)
		}
		if len(clusters.Items) < len(p.clusters) {
			return []string{fmt.Sprintf("%d of %d clusters joined", len(clusters.Items), len(p.clusters))}, nil
		}
		return nil, nil
	}); err != nil {
		return err
	}
	for i, by := range wrongClocks {
		if i < len(p.clusters) {
			p.clusters[i].toHub.suffer(dates(by))
		}
	}
	for _, c := range p.clusters {
		for addOn := range p.images {
			if kindOf(addOn) != counted { // The placement chooses, which the judge learns from what it does.
				p.judge.wants(one{c.Name, addOn}, true)
			}
		}
		if err := p.editCluster(c.Name, func(cluster *clusterv1.ManagedCluster) {
			for addOn := range p.images {
				setLabel(cluster, addOn, true)
			}
			if p.isCanary(c.Name) {
				cluster.Labels[canaryLabel] = "yes"
			}
		}); err != nil {
			return err
		}
	}
	// The definitions come last, so that it is decided who gets what first. The canaries get them after all others.
	time.Sleep(2 * settled)
	for _, c := range p.canaries() {
		time.AfterFunc(time.Minute, p.way.suffer(refusesIn(c.Name)))
	}
	for addOn := range p.images {
		if err := create(p.ctx, p.admin, definitionOf(addOn)); err != nil {
			return err
		}
	}
	return p.until(p.patience(), func() ([]string, error) { return p.differences(p.images) })
}

// patience is how long the fleet may take for a rollout to all clusters.
func (p *play) patience() time.Duration {
	return 30*time.Minute + time.Duration(len(p.clusters)/atOnce+1)*5*time.Minute
}

// until waits until nothing is left to be said.
func (p *play) until(most time.Duration, left func() ([]string, error)) error {
	for end := time.Now().Add(most); ; time.Sleep(15 * time.Second) {
		said, err := left()
		if err != nil || len(said) == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s there are %d differences, such as %v", most, len(said), said[:min(3, len(said))])
		}
	}
}

// links returns the ways of all programs.
func (p *play) links() []*link {
	all := []*link{p.way}
	for _, c := range p.clusters {
		all = append(all, c.toHub, c.toOwn)
	}
	return all
}

// mend ends all outages and lies, replaces bad images, and edits the Placements of the other scheduler, as Events about
// add-ons ask for that are kept because it has decided nothing since their clusters came back.
func (p *play) mend() {
	p.manager.start(p.ctx)
	for _, l := range p.links() {
		l.honest()
		l.mend()
	}
	for _, c := range p.clusters {
		c.agent.start(p.ctx)
	}
	p.scheduler.mend()
	for addOn, image := range p.chosenImages() {
		if isBad(image) {
			p.setImage(addOn, p.nextImage("v"))
		}
		if kindOf(addOn) == foreign {
			p.editSpec(addOn, func(spec *clusterv1beta1.PlacementSpec) {
				spec.NumberOfClusters = new(int32(len(p.clusters)))
			})
		}
	}
}

// conclude compares the fleet with what people asked for, and then waits for writes that nothing asks for.
func (p *play) conclude() ([]string, error) {
	err := p.until(p.patience(), func() ([]string, error) { return p.differences(p.chosenImages()) })
	if err != nil {
		p.judge.violated("%v", err)
		return p.judge.found(), nil
	}
	p.beQuiet(p.links())
	return p.judge.found(), nil
}

// some draws a cluster.
func (p *play) some() *Cluster { return p.clusters[p.IntN(len(p.clusters))] }

// addOn draws an add-on, hooked one with a hook.
func (p *play) addOn() string { return addOnName(p.IntN(p.options.AddOns)) }
func (p *play) hooked() string {
	return addOnName(p.IntN((p.options.AddOns+int(kinds)-1)/int(kinds)) * int(kinds))
}

// between draws a time.
func (p *play) between(least, most time.Duration) time.Duration {
	return least + time.Duration(p.Int64N(int64(most-least)))
}

// later does something later in the day, if there is time.
func (p *play) later(after time.Duration, do func()) {
	time.AfterFunc(min(after, time.Until(p.end)), do)
}

func (p *play) nextImage(prefix string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.versions++
	return fmt.Sprint(prefix, p.versions)
}

// chosenImages are the images that people chose for the add-ons.
func (p *play) chosenImages() map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.images)
}

// setImage changes the template of an add-on in place.
func (p *play) setImage(addOn, image string) { p.replaceImage(addOn, "", image) }

// replaceImage changes the template of an add-on in place if it has an image; empty is any.
func (p *play) replaceImage(addOn, before, image string) {
	p.editing <- struct{}{}
	defer func() { <-p.editing }()
	if before != "" && p.chosenImages()[addOn] != before {
		return
	}
	err := edits(p, addOn, func(now *addonv1alpha1.AddOnTemplate) { now.Spec = template(addOn, image).Spec })
	if err != nil {
		p.judge.violated("changing the template of %s: %v", addOn, err)
		return
	}
	p.options.Log.Info("people change a template", "addOn", addOn, "image", image)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.images[addOn] = image
}

// editCluster changes a ManagedCluster.
func (p *play) editCluster(name string, edit func(*clusterv1.ManagedCluster)) error {
	return edits(p, name, edit)
}

// edits changes an object of the hub, also where another client writes it meanwhile.
func edits[T any, P interface {
	*T
	client.Object
}](p *play, name string, change func(P)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object := P(new(T))
		if err := p.admin.Get(p.ctx, client.ObjectKey{Name: name}, object); err != nil {
			return fmt.Errorf("reading %T %s: %w", object, name, err)
		}
		change(object)
		return p.admin.Update(p.ctx, object)
	})
}
