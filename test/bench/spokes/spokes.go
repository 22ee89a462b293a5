package spokes

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/watch"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// User is the name under which the audit log of the hub has the requests of the clusters. Its group is that of
// administrators, whom API Priority and Fairness does not limit.
const (
	User  = "bench-spokes"
	Group = "system:masters"
)

const (
	// defaultWriters is how many writes are sent at once by default.
	defaultWriters = 8
	// retryDelay is the pause after a write that failed.
	retryDelay = 50 * time.Millisecond
	// pageSize is how many objects a page of a list has.
	pageSize = 500
)

// Options are the options of the clusters.
type Options struct {
	// Config is the configuration of User.
	Config *rest.Config
	// Writers is how many writes are sent at once; zero means 8.
	Writers int
	// Judge decides what becomes of each work; nil means that all are healthy. It must not block.
	Judge func(*workv1.ManifestWork) Outcome
	// Delay is how long a cluster needs until it answers a new generation of a work.
	Delay time.Duration
	// Heartbeat is how often each cluster that joined renews its lease; zero means never.
	Heartbeat time.Duration
	// Log receives what fails; nil drops it.
	Log io.Writer
}

// Spokes are the clusters. Start them, and call Stop in the end.
type Spokes struct {
	opts      Options
	client    client.WithWatch
	responder *Responder
	queue     workqueue.TypedDelayingInterface[types.NamespacedName]
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu sync.Mutex
	// pending are the works to answer, each as it was seen last.
	pending map[types.NamespacedName]seen
	// reporting are the works of which each cluster has yet to report.
	reporting map[string]map[string]bool
	meter     meter
	joined    []string
}

// seen is a work that was seen at an instant.
type seen struct {
	work  *workv1.ManifestWork
	since time.Time
}

// Start watches and answers the ManifestWorks of a hub until Stop.
func Start(ctx context.Context, opts Options) (*Spokes, error) {
	if opts.Writers == 0 {
		opts.Writers = defaultWriters
	}
	if opts.Judge == nil {
		opts.Judge = func(*workv1.ManifestWork) Outcome { return Healthy }
	}
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	c, err := client.NewWithWatch(opts.Config, client.Options{Scheme: fleet.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("building the client of the clusters: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Spokes{
		opts: opts, client: c, responder: NewResponder(), stop: cancel,
		queue: workqueue.NewTypedDelayingQueueWithConfig(
			workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Name: "spokes"}),
		pending: map[types.NamespacedName]seen{}, reporting: map[string]map[string]bool{},
		meter: newMeter(opts.Writers, time.Now()),
	}
	one := watch.Watch[*workv1.ManifestWork]{
		Name: "spokes", Description: "manifestworks", Source: s.source(), Handler: (*works)(s),
	}
	s.running.Go(func() { one.Run(ctx) })
	for range opts.Writers {
		s.running.Go(func() { s.write(ctx) })
	}
	if opts.Heartbeat > 0 {
		s.running.Go(func() { s.heartbeat(ctx) })
	}
	return s, nil
}

// source lists and watches all works.
func (s *Spokes) source() watch.Source {
	source := watch.FromClient(s.client, metav1.NamespaceAll,
		func() client.ObjectList { return &workv1.ManifestWorkList{} })
	source.PageSize = pageSize
	return source
}

// Stop ends the clusters and waits until their last write is done.
func (s *Spokes) Stop() {
	s.stop()
	s.queue.ShutDown()
	s.running.Wait()
}

// Judge replaces Options.Judge for the works that are seen from now on, and looks at all works again when anything
// about them changes.
func (s *Spokes) Judge(judge func(*workv1.ManifestWork) Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Judge = judge
}

// Delay replaces Options.Delay for the works that are seen from now on.
func (s *Spokes) Delay(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Delay = delay
}

// works is the handler of the watch.
type works Spokes

// Replace implements watch.Handler.
func (w *works) Replace(ctx context.Context, all []*workv1.ManifestWork, _ string) {
	for _, work := range all {
		w.Update(ctx, work)
	}
}

// Update implements watch.Handler. A work that carries its answer is dropped, so that memory is needed only for those
// that wait.
func (w *works) Update(_ context.Context, work *workv1.ManifestWork) {
	s := (*Spokes)(w)
	key := client.ObjectKeyFromObject(work)
	s.mu.Lock()
	defer s.mu.Unlock()
	reported := Reported(work)
	if work.DeletionTimestamp.IsZero() && !reported {
		s.owe(key)
	} else {
		s.settle(key)
	}
	since := time.Now()
	if earlier, waiting := s.pending[key]; waiting {
		since = earlier.since
	}
	s.pending[key] = seen{work: work, since: since}
	s.meter.waiting(len(s.pending))
	if s.opts.Delay > 0 && !reported && work.DeletionTimestamp.IsZero() {
		s.queue.AddAfter(key, s.opts.Delay)
		return
	}
	s.queue.Add(key)
}

// Delete implements watch.Handler.
func (w *works) Delete(_ context.Context, work *workv1.ManifestWork) {
	s := (*Spokes)(w)
	key := client.ObjectKeyFromObject(work)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, key)
	s.settle(key)
}

// owe remembers that a cluster has yet to report about a work.
func (s *Spokes) owe(key types.NamespacedName) {
	if s.reporting[key.Namespace] == nil {
		s.reporting[key.Namespace] = map[string]bool{}
	}
	s.reporting[key.Namespace][key.Name] = true
	s.meter.reporting(len(s.reporting))
}

// settle forgets that.
func (s *Spokes) settle(key types.NamespacedName) {
	delete(s.reporting[key.Namespace], key.Name)
	if len(s.reporting[key.Namespace]) == 0 {
		delete(s.reporting, key.Namespace)
	}
}

// write answers works until the queue ends.
func (s *Spokes) write(ctx context.Context) {
	for {
		key, ended := s.queue.Get()
		if ended {
			return
		}
		s.answer(ctx, key)
		s.queue.Done(key)
	}
}

// answer answers one work as it was seen last.
func (s *Spokes) answer(ctx context.Context, key types.NamespacedName) {
	s.mu.Lock()
	task, waiting := s.pending[key]
	delete(s.pending, key)
	judge := s.opts.Judge
	s.mu.Unlock()
	if !waiting {
		return
	}
	a := s.responder.Answer(ctx, task.work, judge(task.work), time.Now())
	if a.Empty() {
		return
	}
	s.metered(func(m *meter) { m.begin(time.Now()) })
	sent, err := s.send(ctx, key, task.work, a)
	s.metered(func(m *meter) { m.end(time.Now(), task.since, sent, err) })
	if err == nil || ctx.Err() != nil {
		return
	}
	fmt.Fprintf(s.opts.Log, "answering work %s: %v\n", key, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, newer := s.pending[key]; !newer {
		s.pending[key] = task
		s.queue.AddAfter(key, retryDelay)
	}
}

func (s *Spokes) metered(do func(*meter)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do(&s.meter)
}

// send writes an answer, and returns how many requests that took. A work that is gone, or that changed meanwhile, so
// that the watch brings it again, is not an error.
func (s *Spokes) send(ctx context.Context, key types.NamespacedName, work *workv1.ManifestWork, a Answer) (int, error) {
	sent := 0
	object := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if a.Finalize {
		body, err := finalizersPatch(work, a.Finalizers)
		if err != nil {
			return sent, err
		}
		sent++
		if err := s.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, body)); err != nil {
			return sent, lost(err)
		}
	}
	if a.Status == nil {
		return sent, nil
	}
	body, err := statusPatch(a.Status)
	if err != nil {
		return sent, err
	}
	// From here on the hub may know, even before the answer of the API server arrives here.
	s.mu.Lock()
	s.settle(key)
	s.mu.Unlock()
	sent++
	return sent, lost(s.client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, body)))
}

// lost drops errors of a race, after which the watch brings the work again, or its end.
func lost(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
