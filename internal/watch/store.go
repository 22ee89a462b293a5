package watch

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store is a Handler that keeps one value for each object and nothing else. Its zero value knows nothing; the fields
// must be set before the first call.
type Store[T client.Object, V comparable] struct {
	// Keep returns the value of an object, and false for an object that is left out.
	Keep func(ctx context.Context, object T) (value V, kept bool)
	// Changed is called with the objects whose values were set, changed or removed, and with none when only the answer of
	// List about completeness changed. It must not block.
	Changed func(keys []types.NamespacedName)

	mu     sync.Mutex
	values map[types.NamespacedName]V
	synced bool
}

// Get returns the value of an object, and whether there is one.
func (s *Store[T, V]) Get(key types.NamespacedName) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[key]
	return value, ok
}

// List returns all values, ordered by the namespace and name of their objects, and whether they are known to be all.
func (s *Store[T, V]) List() (values []V, synced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(s.values), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	values = make([]V, 0, len(keys))
	for _, key := range keys {
		values = append(values, s.values[key])
	}
	return values, s.synced
}

// Replace implements Handler.
func (s *Store[T, V]) Replace(ctx context.Context, objects []T, _ string) {
	values := make(map[types.NamespacedName]V, len(objects))
	for _, object := range objects {
		if value, kept := s.Keep(ctx, object); kept {
			values[client.ObjectKeyFromObject(object)] = value
		}
	}
	s.set(values, true)
}

// Clear removes all values. With synced it is known that no objects exist, otherwise nothing is known.
func (s *Store[T, V]) Clear(synced bool) { s.set(map[types.NamespacedName]V{}, synced) }

// Update implements Handler.
func (s *Store[T, V]) Update(ctx context.Context, object T) {
	value, kept := s.Keep(ctx, object)
	if !kept {
		s.Delete(ctx, object)
		return
	}
	key := client.ObjectKeyFromObject(object)
	s.mu.Lock()
	before, had := s.values[key]
	if s.values == nil {
		s.values = map[types.NamespacedName]V{}
	}
	s.values[key] = value
	s.mu.Unlock()
	if !had || before != value {
		s.Changed([]types.NamespacedName{key})
	}
}

// Delete implements Handler.
func (s *Store[T, V]) Delete(_ context.Context, object T) {
	key := client.ObjectKeyFromObject(object)
	s.mu.Lock()
	_, had := s.values[key]
	delete(s.values, key)
	s.mu.Unlock()
	if had {
		s.Changed([]types.NamespacedName{key})
	}
}

// set replaces all values.
func (s *Store[T, V]) set(values map[types.NamespacedName]V, synced bool) {
	var changed []types.NamespacedName
	s.mu.Lock()
	for key, value := range values {
		if before, had := s.values[key]; !had || before != value {
			changed = append(changed, key)
		}
	}
	for key := range s.values {
		if _, has := values[key]; !has {
			changed = append(changed, key)
		}
	}
	flipped := s.synced != synced
	s.values, s.synced = values, synced
	s.mu.Unlock()
	if flipped || len(changed) > 0 {
		s.Changed(changed)
	}
}

// Trigger holds at most one pending signal, so that Fire never blocks and many signals cause one reaction.
type Trigger chan struct{}

// NewTrigger returns a Trigger without a signal.
func NewTrigger() Trigger { return make(Trigger, 1) }

// Fire signals, unless a signal is pending.
func (t Trigger) Fire() {
	select {
	case t <- struct{}{}:
	default:
	}
}

// Set runs one watch for each wanted key.
type Set[K comparable] struct {
	// Wanted returns the keys to watch. It is called at the start and after each signal of Changed; running reports
	// whether a key is watched already.
	Wanted func(ctx context.Context, running func(K) bool) []K
	// Start prepares the watch of a key and returns the function that runs it until its context ends.
	Start func(key K) (run func(ctx context.Context))
	// Changed signals that the wanted keys may have changed.
	Changed Trigger
}

// Run starts and stops watches until ctx ends, and returns when all of them have ended.
func (s *Set[K]) Run(ctx context.Context) {
	var watches sync.WaitGroup
	defer watches.Wait()
	stops := map[K]context.CancelFunc{}
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for {
		wanted := s.Wanted(ctx, func(key K) bool { return stops[key] != nil })
		for key, stop := range stops {
			if !slices.Contains(wanted, key) {
				stop()
				delete(stops, key)
			}
		}
		for _, key := range wanted {
			if stops[key] != nil {
				continue
			}
			within, stop := context.WithCancel(ctx)
			stops[key] = stop
			run := s.Start(key)
			watches.Go(func() {
				defer stop()
				run(within)
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-s.Changed:
		}
	}
}
