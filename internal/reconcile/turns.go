package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Turns leave workers to short passes: a few of the workers have long ones at the same time. Objects with long passes
// have their turns in the order in which they came, those of namespaces with fewer turns first. One that waits has no
// pass until then. The zero value lets all
// pass.
type Turns struct {
	mutex sync.Mutex
	most  int
	// taken are those that have one, true, or for which a turn is kept, false.
	taken map[reconcile.Request]bool
	// waiting are those that wait, the second ones with passes that go first. These have every second turn at most;
	// favored reports that they had the last one.
	waiting [2][]reconcile.Request
	favored bool
	// served numbers the last turns of the namespaces while any object waits; number is the last one.
	served map[string]int
	number int
}

// Length says how long a pass may take, and whether it can wait.
type Length int

const (
	// Short passes do not wait.
	Short Length = iota
	// Long passes wait for those that came before.
	Long
	// LongFirst passes wait less, because they may end what the others wait for.
	LongFirst
)

// Limit sets how many long passes there may be at the same time. It must be called before the first pass.
func (t *Turns) Limit(most int) { t.most = most }

// Enter reports whether an object may have its pass, which must end with Leave. One that may not is returned by Leave
// when its turn comes.
func (t *Turns) Enter(object reconcile.Request, pass Length) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	_, kept := t.taken[object]
	switch {
	case t.most == 0 || pass == Short:
		t.forget(object)
		return true
	case kept || len(t.taken) < t.most && len(t.waiting[0])+len(t.waiting[1]) == 0:
		t.take(object, true)
		return true
	}
	at := int(pass - Long)
	if !slices.Contains(t.waiting[at], object) {
		t.forget(object)
		t.waiting[at] = append(t.waiting[at], object)
	}
	return false
}

// Leave ends a pass, whether it had a turn or not, and returns the objects whose turn it is.
func (t *Turns) Leave(object reconcile.Request) (next []reconcile.Request) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.forget(object)
	for len(t.taken) < t.most && len(t.waiting[0])+len(t.waiting[1]) > 0 {
		t.favored = len(t.waiting[0]) == 0 || !t.favored && len(t.waiting[1]) > 0
		from := &t.waiting[0]
		if t.favored {
			from = &t.waiting[1]
		}
		i := t.first(*from)
		next = append(next, (*from)[i])
		t.take((*from)[i], false)
		*from = slices.Delete(*from, i, i+1)
	}
	return next
}

// first returns which of those that wait is next: the first one of the namespace that has the fewest turns, or had its
// last one before the others. So many objects of one tenant do not hold up those of others.
func (t *Turns) first(waiting []reconcile.Request) int {
	turns := map[string]int{}
	for object := range t.taken {
		turns[object.Namespace]++
	}
	next := 0
	for i, object := range waiting {
		is, best := object.Namespace, waiting[next].Namespace
		if cmp.Or(cmp.Compare(turns[is], turns[best]), cmp.Compare(t.served[is], t.served[best])) < 0 {
			next = i
		}
	}
	return next
}

// take gives an object a turn, which its pass has or which is kept for it.
func (t *Turns) take(object reconcile.Request, passes bool) {
	if t.taken == nil {
		t.taken = map[reconcile.Request]bool{}
	}
	t.taken[object] = passes
	if t.served == nil || len(t.waiting[0])+len(t.waiting[1]) == 0 {
		t.served = map[string]int{}
	}
	t.number++
	t.served[object.Namespace] = t.number
}

// waits reports whether an object has no pass although one is due.
func (t *Turns) waits(object reconcile.Request) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	passes, taken := t.taken[object]
	return taken && !passes || slices.Contains(t.waiting[0], object) || slices.Contains(t.waiting[1], object)
}

// forget takes an object out of those that wait, and takes back its turn.
func (t *Turns) forget(object reconcile.Request) {
	delete(t.taken, object)
	for i := range t.waiting {
		t.waiting[i] = slices.DeleteFunc(t.waiting[i], func(other reconcile.Request) bool { return other == object })
	}
}

// OptionsInTurns returns the options of a controller of which at most half of the workers have long passes. An object
// that waits for its turn keeps its back-off: it has not succeeded.
func OptionsInTurns(workers int, turns *Turns) controller.Options {
	options := Options(workers)
	options.RateLimiter = patient{options.RateLimiter, turns}
	turns.Limit(max(1, workers/2))
	return options
}

// patient is a rate limiter that keeps the back-off of objects that wait for their turn.
type patient struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	turns *Turns
}

// Forget forgets the failures of an object, unless it waits.
func (p patient) Forget(r reconcile.Request) {
	if !p.turns.waits(r) {
		p.TypedRateLimiter.Forget(r)
	}
}

// Gate lets one caller in at a time, as a mutex does, but one that waits gives up when its context ends. It is for what
// is held while a cache or an API server is asked: they may not answer for a long time, and a program has to end all
// the same. The zero value is open.
type Gate struct {
	once   sync.Once
	inside chan struct{}
}

// Enter waits until no other caller is inside, and returns how to leave. The error says what was waited for, and why no
// longer.
func (g *Gate) Enter(ctx context.Context, what string) (leave func(), err error) {
	g.once.Do(func() { g.inside = make(chan struct{}, 1) })
	select {
	case g.inside <- struct{}{}:
		return func() { <-g.inside }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting to %s: %w", what, context.Cause(ctx))
	}
}
