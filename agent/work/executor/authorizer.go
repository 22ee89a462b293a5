package executor

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/watch"
)

// parallelReviews is how many reviews run at the same time for one work.
const parallelReviews = 20

// Options are what an Authorizer needs; all are required.
type Options struct {
	// Reviews creates SubjectAccessReviews on the spoke.
	Reviews authorizationclient.SubjectAccessReviewInterface
	// Bindings and Roles list and watch RBAC of the spoke.
	Bindings rbacclient.RbacV1Interface
	Roles    metadata.Interface
	// Impersonate returns a client of the spoke that acts as a user, without effect (dry run).
	Impersonate func(user string) (spoke.Client, error)
	// Clock is the clock of a pass.
	Clock clock.PassiveClock
	// Wake is called with the name of each work that must be reconciled because RBAC changed.
	Wake func(work string)
}

// Authorizer answers questions about executors. It is safe for concurrent use.
type Authorizer struct {
	api     *api
	cache   *cache
	rbac    *rbacState
	watcher *watcher
}

// New returns an Authorizer with an empty cache. Run must be called for it to see changes of RBAC.
func New(o Options) *Authorizer {
	changed := watch.NewTrigger()
	a := &Authorizer{
		api:   &api{reviews: o.Reviews, impersonate: o.Impersonate, clients: map[ServiceAccount]spoke.Client{}},
		cache: &cache{clock: o.Clock, works: map[string]*entry{}, wake: o.Wake, usedChanged: changed.Fire},
	}
	a.cache.unused = a.api.drop
	a.rbac = newRBACState(a.cache.invalidate)
	a.watcher = &watcher{bindings: o.Bindings, roles: o.Roles, rbac: a.rbac, used: a.cache.used, usedChanged: changed}
	return a
}

// Run watches RBAC while a work has an executor, until the context ends.
func (a *Authorizer) Run(ctx context.Context) { a.watcher.run(ctx) }

// Used reports whether any work has an executor.
func (a *Authorizer) Used() bool { return a.cache.used() }

// Forget drops everything about a work that is gone or that has no executor.
func (a *Authorizer) Forget(work string) { a.cache.forget(work) }

// Session asks about one work in one pass.
type Session struct {
	authorizer *Authorizer
	work       string
	who        ServiceAccount
	epoch      int
	now        time.Time
}

// Begin starts a pass over a work with an executor at the instant now.
func (a *Authorizer) Begin(work string, who ServiceAccount, now time.Time) *Session {
	return &Session{authorizer: a, work: work, who: who, epoch: a.cache.begin(work, who), now: now}
}

// Decide answers all questions of the work, from the cache where it can. Cached decisions of other questions of the
// work are dropped.
func (s *Session) Decide(ctx context.Context, questions []Question) []Decision {
	decisions := make([]Decision, len(questions))
	present := make(map[Question]bool, len(questions))
	var missing []int
	for i, q := range questions {
		present[q] = true
		d, known := s.authorizer.cache.get(s.work, q)
		if !known || !d.valid(s.now, s.authorizer.rbac.watched(), q.Object) {
			missing = append(missing, i)
			continue
		}
		decisions[i] = s.scheduled(q, d)
	}
	s.authorizer.cache.keep(s.work, present)
	reviews := s.review(ctx, questions, missing)
	for n, i := range missing {
		decisions[i] = decide(s.who, questions[i], reviews[n], s.now)
		if decisions[i].Verdict != Unknown {
			decisions[i] = s.put(questions[i], decisions[i])
		}
	}
	return decisions
}

// review asks the API server the questions with the given indexes, several reviews at a time.
func (s *Session) review(ctx context.Context, questions []Question, missing []int) [][]review {
	group := errgroup.Group{}
	group.SetLimit(parallelReviews)
	reviews := make([][]review, len(missing))
	for n, i := range missing {
		q := questions[i]
		verbs := q.Verbs.list()
		reviews[n] = make([]review, len(verbs))
		for j, verb := range verbs {
			group.Go(func() error {
				r := &reviews[n][j]
				r.verb = verb
				if fault := reconcile.Contain(ctx, q.Object.String(), func() {
					r.allowed, r.err = s.authorizer.api.allowed(ctx, s.who, q, verb)
				}); fault != nil {
					r.err = fault
				}
				return nil
			})
		}
	}
	_ = group.Wait()
	return reviews
}

// CheckEscalation checks that a manifest grants no permissions which the executor does not have. It is called right
// before the manifest is applied, because the work itself may have created the role just before. It says nothing about
// the object, which may differ from the manifest: the executor tries each write to it besides, see Impersonate.
func (s *Session) CheckEscalation(ctx context.Context, q Question, object *unstructured.Unstructured,
) Decision {
	client, err := s.Impersonate()
	if err != nil {
		return Decision{Verdict: Unknown, Err: err}
	}
	if role, binds := q.boundRole(object); binds {
		s.authorizer.cache.bind(s.work, role)
	}
	cause, err := s.tryCreate(ctx, client, q, object)
	switch {
	case err != nil:
		return Decision{Verdict: Unknown, Err: err}
	case cause != "":
		return s.put(q, escalationDenied(q, cause, s.now))
	}
	return s.put(q, Decision{Verdict: Allowed, EscalationChecked: true, reviewed: s.now})
}

// DenyWrite records that the API server refused a write as the executor: the object would grant permissions that the
// executor does not have.
func (s *Session) DenyWrite(q Question) Decision {
	return s.put(q, escalationDenied(q, fmt.Sprintf("the API server does not accept this write from %s", s.who), s.now))
}

// Impersonate returns a client that acts as the executor, without effect (dry run). Where an object grants permissions,
// the caller sends each write with it first.
func (s *Session) Impersonate() (spoke.Client, error) { return s.authorizer.api.as(s.who) }

// MayDelete asks whether the executor may delete the object. An object that stays when its work is deleted needs that
// only when it must be recreated, so the answer is not cached.
func (s *Session) MayDelete(ctx context.Context, q Question) Decision {
	allowed, err := s.authorizer.api.allowed(ctx, s.who, q, "delete")
	switch {
	case err != nil:
		return Decision{Verdict: Unknown, Err: err}
	case !allowed:
		return Decision{Verdict: Denied, Lacks: []string{"delete"}, Err: deniedError(q.Object, "",
			fmt.Sprintf("it cannot be changed in place, and to make it again %s lacks delete", s.who))}
	}
	return Decision{Verdict: Allowed}
}

// User returns the user name of the executor.
func (s *Session) User() string { return s.who.String() }

// put caches a decision and returns it with the instant of the next review.
func (s *Session) put(q Question, d Decision) Decision {
	return s.scheduled(q, s.authorizer.cache.put(s.work, s.epoch, q, d))
}

// scheduled returns the decision with the instant of the next review.
func (s *Session) scheduled(q Question, d Decision) Decision {
	d.Recheck = d.again(s.authorizer.rbac.watched(), q.Object)
	return d
}
