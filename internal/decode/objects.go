package decode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/spokelet/spokelet/internal/reconcile"
)

// patience is how long a kind may fail to be listed or watched before Failing says so.
const patience = time.Minute

// Objects are the informers of a program, and the objects that they could not decode.
type Objects struct {
	// Scheme has the Go types of the kinds.
	Scheme *runtime.Scheme
	// Logger gets a line for each object that cannot be decoded, once per version. It is set before the first informer.
	Logger logr.Logger
	// Clock is the clock of Failing.
	Clock clock.PassiveClock

	// seen reports whether an object could not be decoded at any time: reads look for marks from then on.
	seen  atomic.Bool
	gauge *prometheus.GaugeVec

	mu      sync.Mutex
	sources map[*source]struct{}
	tell    func(Bad)
}

// New returns Objects that log nothing. A nil registerer registers no metric.
func New(scheme *runtime.Scheme, now clock.PassiveClock, metrics prometheus.Registerer) (*Objects, error) {
	gauge, err := reconcile.RegisterMetric(metrics, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "spokelet_undecodable_objects",
		Help: "Objects that exist and cannot be decoded, so that they are left as they are. The log names them.",
	}, []string{"kind"}))
	if err != nil {
		return nil, fmt.Errorf("registering the metric of objects that cannot be decoded: %w", err)
	}
	return &Objects{Scheme: scheme, Clock: now, gauge: gauge, sources: map[*source]struct{}{}}, nil
}

// Tell makes tell be called for each object that cannot be decoded, once per version. It must not block.
func (o *Objects) Tell(tell func(Bad)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tell = tell
}

// newSource returns the source of an informer, and nil for objects that are not decoded into a Go type.
func (o *Objects) newSource(like runtime.Object) *source {
	gvk, err := apiutil.GVKForObject(like, o.Scheme)
	if err != nil || !o.Scheme.Recognizes(gvk) {
		return nil
	}
	s := &source{objects: o, kind: newKind(o.Scheme, gvk)}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sources[s] = struct{}{}
	return s
}

// newInformer is a constructor of the informers of a cache, as the options of a cache have it.
type newInformer = func(
	toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers,
) toolscache.SharedIndexInformer

// constructor returns a constructor of informers that take lists and events apart. next makes the informers themselves;
// nil means those of client-go.
func (o *Objects) constructor(next newInformer) newInformer {
	if next == nil {
		next = toolscache.NewSharedIndexInformer
	}
	return func(
		from toolscache.ListerWatcher, like runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		if s := o.newSource(like); s != nil {
			from = s.wrap(from)
		}
		return next(from, like, resync, indexers)
	}
}

// drop removes an informer that has ended.
func (o *Objects) drop(s *source) {
	s.forgetAll()
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.sources, s)
}

func (o *Objects) count(kind string, n int) {
	if n != 0 {
		o.gauge.WithLabelValues(kind).Add(float64(n))
	}
}

// report logs an object that cannot be decoded, and tells of it.
func (o *Objects) report(ctx context.Context, b Bad) {
	o.Logger.Error(errors.New(b.Cause), "an object cannot be decoded and is left as it is, as is all that depends on it",
		"kind", b.Kind.Kind, "namespace", b.Key.Namespace, "name", b.Key.Name, "resourceVersion", b.Version)
	o.mu.Lock()
	tell := o.tell
	o.mu.Unlock()
	if tell != nil && ctx.Err() == nil {
		tell(b)
	}
}

func (o *Objects) informers() []*source {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make([]*source, 0, len(o.sources))
	for s := range o.sources {
		all = append(all, s)
	}
	return all
}

// Bad returns the objects that cannot be decoded now, ordered by kind, namespace and name.
func (o *Objects) Bad() []Bad {
	var all []Bad
	for _, s := range o.informers() {
		all = append(all, s.all()...)
	}
	slices.SortFunc(all, func(a, b Bad) int {
		return cmp.Or(cmp.Compare(a.Kind.String(), b.Kind.String()), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return all
}

// Failing returns which kinds cannot be listed or watched for a minute; nil when all can.
func (o *Objects) Failing() error {
	var causes []error
	for _, s := range o.informers() {
		causes = append(causes, s.failing(patience))
	}
	slices.SortFunc(causes, func(a, b error) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return errors.Join(causes...)
}
