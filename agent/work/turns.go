package work

import (
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// largeWork is from how many bytes of manifests a work counts as large, and largeManifest from how many of one
	// manifest: then its pass may take long, because its objects wait for those of other works.
	largeWork, largeManifest = 64 << 10, 15 << 10
	// largeRules is the same for the expressions of condition rules, of which each manifest may have all.
	largeRules = 256 << 10
)

// turns leave workers to small works: only half of the workers have passes over large works at the same time. These
// have their turns in the order in which they came, and one that waits has no pass until then. The zero value lets all
// pass.
type turns struct {
	mutex sync.Mutex
	// most is how many large works may have a pass at the same time; zero for any number.
	most int
	// taken are those that have one, true, or for which a turn is kept, false.
	taken   map[string]bool
	waiting []string
}

// enter reports whether a work may have its pass, which must end with leave. One that may not is returned by leave when
// its turn comes.
func (t *turns) enter(work string, large bool) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	_, kept := t.taken[work]
	switch {
	case t.most == 0 || !large:
		t.forget(work)
		return true
	case !kept && slices.Contains(t.waiting, work):
		return false
	case !kept && (len(t.taken) >= t.most || len(t.waiting) > 0):
		t.waiting = append(t.waiting, work)
		return false
	}
	if t.taken == nil {
		t.taken = map[string]bool{}
	}
	t.taken[work] = true
	return true
}

// leave ends a pass of a work, whether it had a turn or not, and returns the works whose turn it is.
func (t *turns) leave(work string) (next []string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.forget(work)
	for len(t.waiting) > 0 && len(t.taken) < t.most {
		first := t.waiting[0]
		t.waiting = t.waiting[1:]
		if t.taken == nil {
			t.taken = map[string]bool{}
		}
		t.taken[first] = false
		next = append(next, first)
	}
	return next
}

// waits reports whether a work has no pass although one is due.
func (t *turns) waits(work string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	passes, taken := t.taken[work]
	return taken && !passes || slices.Contains(t.waiting, work)
}

// forget takes a work out of those that wait, and takes back its turn.
func (t *turns) forget(work string) {
	delete(t.taken, work)
	t.waiting = slices.DeleteFunc(t.waiting, func(other string) bool { return other == work })
}

// patient is a rate limiter that keeps the back-off of works that wait for their turn: they have not succeeded.
type patient struct {
	workqueue.TypedRateLimiter[ctrl.Request]
	turns *turns
}

// Forget forgets the failures of a work, unless it waits.
func (p patient) Forget(r ctrl.Request) {
	if !p.turns.waits(r.Name) {
		p.TypedRateLimiter.Forget(r)
	}
}

// isLarge reports whether a pass over a work may take long.
func isLarge(work *workv1.ManifestWork) bool {
	sum, rules := 0, 0
	for i := range work.Spec.ManifestConfigs {
		for _, rule := range work.Spec.ManifestConfigs[i].ConditionRules {
			rules += len(rule.MessageExpression)
			for _, expression := range rule.CelExpressions {
				rules += len(expression)
			}
		}
	}
	if rules*len(work.Spec.Workload.Manifests) > largeRules {
		return true
	}
	for i := range work.Spec.Workload.Manifests {
		bytes := len(work.Spec.Workload.Manifests[i].Raw)
		if sum += bytes; bytes > largeManifest || sum > largeWork {
			return true
		}
	}
	return false
}
