package work

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/spokelet/spokelet/internal/reconcile"
	"github.com/spokelet/spokelet/internal/watch"
)

// questions is how many questions about one work are asked at the same time.
const questions = 20

// guard keeps works with an executor within the rights of that executor: it is asked about each manifest before that
// is applied or its object read. The objects are then written with the agent's own identity, and deleted without a
// question, both as the contract says (section 1.9): an executor decides which objects a work may have, not what is in
// them, unless they hand out rights. What a work once got stays until its manifests go.
type guard struct {
	access   *access
	grants   *grants
	bindings *bindings
	watcher  *rbacWatcher
}

// newGuard returns a guard that asks the spoke; wake is called for works that must be looked at again.
func newGuard(config *rest.Config, client *http.Client, metas metadata.Interface, now clock.PassiveClock,
	wake func(holder),
) (*guard, error) {
	reviews, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("building the client for access reviews: %w", err)
	}
	rbac, err := rbacclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("building the client of RBAC: %w", err)
	}
	g := &guard{
		access: &access{
			config: config, reviews: reviews.SubjectAccessReviews(), posing: map[executor]dynamic.Interface{},
		},
		grants: &grants{clock: now, holders: map[holder]*grant{}, wake: wake},
	}
	g.bindings = newBindings(g.grants.hear)
	g.watcher = &rbacWatcher{
		metas: metas, rbac: rbac, bindings: g.bindings, wanted: g.grants.wanted, moved: watch.NewTrigger(),
	}
	g.grants.moved, g.grants.dropped = g.watcher.moved.Fire, g.access.drop
	return g, nil
}

// inquiry is what the guard is to find out in one pass.
type inquiry struct {
	holder holder
	who    executor
	epoch  int
}

// authorize asks about all manifests of a work with an executor whether they may be applied, and marks the tasks that
// may not. Manifests that hand out rights are asked about once more by dare.
func (g *guard) authorize(ctx context.Context, f *facts, tasks []task) *inquiry {
	if f.work.Spec.Executor == nil {
		g.grants.release(f.holder)
		return nil
	}
	who, wrong := executorOf(f.work.Spec.Executor)
	if wrong != nil {
		g.grants.release(f.holder)
		for i := range tasks {
			if tasks[i].err == nil {
				tasks[i].refuse(wrong, true)
			}
		}
		return nil
	}
	q := &inquiry{holder: f.holder, who: who, epoch: g.grants.claim(f.holder, who)}
	keys := map[question]bool{}
	var asked []*task
	for i := range tasks {
		t := &tasks[i]
		if t.err != nil {
			continue
		}
		key := t.question()
		keys[key] = true
		c, known := g.grants.look(f.holder, key)
		if !known || !c.believed(f.now, g.bindings.live(), t.id()) {
			asked = append(asked, t)
			continue
		}
		g.settle(t, c)
	}
	g.grants.keep(f.holder, keys)
	g.ask(ctx, q, asked)
	return q
}

// ask asks all questions about the tasks, several at a time.
func (g *guard) ask(ctx context.Context, q *inquiry, tasks []*task) {
	group := errgroup.Group{}
	group.SetLimit(questions)
	answers := make([][]answer, len(tasks))
	for i, t := range tasks {
		verbs := t.verbs()
		answers[i] = make([]answer, len(verbs))
		for j, verb := range verbs {
			group.Go(func() error {
				said := &answers[i][j]
				said.verb = verb
				if fault := contain(ctx, t.id().String(), func() {
					said.allowed, said.err = g.access.allowed(ctx, q.who, t, verb)
				}); fault != nil {
					said.err = fault
				}
				return nil
			})
		}
	}
	_ = group.Wait()
	for i, t := range tasks {
		c, err := clearanceOf(q.who, t, answers[i])
		if err != nil {
			t.refuse(err, false)
			continue
		}
		c.at = t.now
		g.settle(t, g.grants.note(q.holder, q.epoch, t.question(), c))
	}
}

// settle makes a task follow a clearance, and come back when that is to be asked for again.
func (g *guard) settle(t *task, c clearance) {
	t.dared = c.dared
	t.recheck = reconcile.Earliest(t.recheck, c.again(g.bindings.live(), t.id()))
	t.obey(c)
}

// dare checks, right before it is applied, that a manifest hands out no rights which its executor lacks. That says
// nothing about the object, which may be another one than the manifest: each write to it is tried besides.
func (g *guard) dare(ctx context.Context, q *inquiry, t *task) {
	if q == nil || t.err != nil || t.denied != nil {
		return
	}
	if !slices.Contains(t.verbs(), "delete") {
		t.mayDelete = func(ctx context.Context) error { return g.mayDelete(ctx, q.who, t) }
	}
	if !t.grantsRights() {
		return
	}
	posing, err := g.access.as(q.who)
	if err != nil {
		t.postpone(err)
		return
	}
	t.trial = &trial{spoke: posing, refuse: func() error {
		return g.deny(q, t, fmt.Sprintf("the API server does not accept this write from %s", q.who))
	}}
	if t.dared {
		return
	}
	if role, binds := t.binds(); binds {
		g.grants.bind(q.holder, role)
	}
	why, err := dares(ctx, posing, q.who, t)
	switch {
	case err != nil:
		t.postpone(err)
	case why == "":
		g.settle(t, g.grants.note(q.holder, q.epoch, t.question(), clearance{at: t.now, dared: true}))
	default:
		_ = g.deny(q, t, why)
	}
}

// mayDelete asks whether the executor may delete the object of a task, and returns why it may not. An executor needs
// that for an object which is not deleted with its work only when it has to be made anew.
func (g *guard) mayDelete(ctx context.Context, who executor, t *task) error {
	allowed, err := g.access.allowed(ctx, who, t, "delete")
	if err != nil {
		return err
	}
	if !allowed {
		return denied(t, "", fmt.Sprintf("it cannot be changed in place, and to make it anew %s lacks delete", who))
	}
	return nil
}

// deny refuses a task because its executor may not hand out what it would, and returns the refusal.
func (g *guard) deny(q *inquiry, t *task, why string) error {
	c := clearance{at: t.now, denied: denied(t, ", error: permission escalation", why)}
	g.settle(t, g.grants.note(q.holder, q.epoch, t.question(), c))
	return c.denied
}
