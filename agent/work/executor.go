package work

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/executor"
	manifests "github.com/spokelet/spokelet/agent/work/manifest"
	client "github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// authorizer asks what the executors of works may do, and watches RBAC while there is one.
type authorizer struct {
	*executor.Authorizer
	// impersonating are the dynamic clients by user.
	impersonating sync.Map
}

// newAuthorizer returns an authorizer that asks the spoke; wake is called for works that must be reconciled.
func newAuthorizer(config *rest.Config, transport *http.Client, metas metadata.Interface, now clock.PassiveClock,
	wake func(holder),
) (*authorizer, error) {
	reviews, err := authorizationclient.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("building the client for access reviews: %w", err)
	}
	rbac, err := rbacclient.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("building the client of RBAC: %w", err)
	}
	a := &authorizer{}
	a.Authorizer = executor.New(executor.Options{
		Reviews: reviews.SubjectAccessReviews(), Bindings: rbac, Roles: metas, Clock: now,
		Wake: func(work string) { wake(holder{name: work}) },
		Impersonate: func(user string) (client.Client, error) {
			as := rest.CopyConfig(config)
			as.Impersonate = rest.ImpersonationConfig{UserName: user}
			transport, err := rest.HTTPClientFor(as)
			if err != nil {
				return client.Client{}, err
			}
			objects, err := dynamic.NewForConfigAndClient(as, transport)
			if err != nil {
				return client.Client{}, err
			}
			a.impersonating.Store(user, objects)
			one, err := client.NewClient(as, transport)
			return one.DryRun(), err
		},
	})
	return a, nil
}

// verbs are what the executor of a work must be allowed for one manifest. What is only read needs no more than that:
// the manifest of strategy ReadOnly, and the one that is complete and never applied again.
func (t *task) verbs() executor.Verbs {
	switch {
	case t.frozen || t.option.strategy.Type == workv1.UpdateStrategyTypeReadOnly:
		return executor.VerbsRead
	case t.owned:
		return executor.VerbsOwn
	}
	return executor.VerbsApply
}

// question is what is asked about the executor of the task.
func (t *task) question() executor.Question {
	return executor.Question{
		Object: manifests.ID(t.id()), Version: t.resource.Version, Desired: manifests.Digest(t.wish.content),
		Verbs: t.verbs(),
	}
}

// denial is why an executor keeps a manifest from being applied, or its object from being read.
type denial struct {
	// err is why the manifest is not applied; nil when it is complete and only reading is at stake.
	err error
	// unread is why the object is not read; nil when it may be.
	unread error
	// lasting means that the answer is definite and not an error that trying again may cure.
	lasting bool
}

// authorize asks about all manifests of a work with an executor whether they may be applied, and marks the tasks that
// may not. Manifests that grant permissions are checked once more by checkEscalation.
func (a *authorizer) authorize(ctx context.Context, f *facts, tasks []task) *executor.Session {
	if f.work.Spec.Executor == nil {
		a.Forget(f.holder.name)
		return nil
	}
	who, wrong := executor.Of(f.work.Spec.Executor)
	if wrong != nil {
		a.Forget(f.holder.name)
		for i := range tasks {
			if tasks[i].err == nil {
				tasks[i].follow(executor.Decision{
					Verdict: executor.Denied, Err: denied(wrong), ReadErr: denied(wrong),
				})
			}
		}
		return nil
	}
	s := a.Begin(f.holder.name, who, f.now)
	var questions []executor.Question
	var asked []*task
	for i := range tasks {
		if t := &tasks[i]; t.err == nil {
			questions, asked = append(questions, t.question()), append(asked, t)
		}
	}
	for i, d := range s.Decide(ctx, questions) {
		asked[i].follow(d)
	}
	return s
}

// follow makes the task follow a decision, and come back when that is to be asked for again.
func (t *task) follow(d executor.Decision) {
	t.escalationChecked = d.EscalationChecked
	t.recheck = reconcile.Earliest(t.recheck, d.Recheck)
	if d.Verdict == executor.Denied && t.frozen {
		d.Err = nil // it is applied already; only reading is at stake
	}
	if d.Err == nil && d.ReadErr == nil {
		return
	}
	t.denied = &denial{lasting: d.Verdict == executor.Denied, err: d.Err, unread: d.ReadErr}
	if d.Verdict == executor.Denied {
		t.denied.err, t.denied.unread = denied(d.Err), denied(d.ReadErr)
	} else if d.ReadErr == nil {
		t.denied.lasting = isRefusal(d.Err)
	}
	t.mark(func(w *wish) { w.denied = true })
}

// denied is a definite refusal as a lasting failure; nil stays nil.
func denied(err error) error {
	if err == nil {
		return nil
	}
	return &failure{reason: workv1.AppliedManifestFailed, message: err.Error()}
}

// checkEscalation checks, right before it is applied, that a manifest grants no permissions which its executor lacks.
func (a *authorizer) checkEscalation(ctx context.Context, s *executor.Session, t *task) {
	if s == nil || t.err != nil || t.denied != nil {
		return
	}
	q := t.question()
	if !q.Verbs.Has("delete") {
		t.mayDelete = func(ctx context.Context) error {
			d := s.MayDelete(ctx, q)
			if d.Verdict == executor.Denied {
				return denied(d.Err)
			}
			return d.Err
		}
	}
	if !q.GrantsPermissions() {
		return
	}
	if _, err := s.Impersonate(); err != nil {
		t.follow(executor.Decision{Verdict: executor.Unknown, Err: err})
		return
	}
	t.trial = &trial{spoke: a.as(s.User()), refuse: func() error {
		t.follow(s.DenyWrite(q))
		return t.denied.err
	}}
	if t.escalationChecked {
		return
	}
	object, err := t.desired()
	if err != nil {
		t.follow(executor.Decision{Verdict: executor.Unknown, Err: err})
		return
	}
	t.follow(s.CheckEscalation(ctx, q, object))
}

// as speaks as a user and without effect.
func (a *authorizer) as(user string) spoke {
	objects, _ := a.impersonating.Load(user)
	impersonating, _ := objects.(dynamic.Interface)
	return spoke{client: impersonating, dryRun: []string{metav1.DryRunAll}}
}

// mark gives the manifest of the task another wish than it has when nothing keeps it from being applied.
func (t *task) mark(how func(*wish)) {
	marked := *t.manifest
	how(&marked.wish)
	t.manifest = &marked
}

// refused is the result of a task whose object must not be read. What was known before a mere error stays known.
func (t *task) refused() result {
	res := result{presence: presenceUnknown, readErr: t.denied.unread}
	if !t.denied.lasting && !t.prior.checked.IsZero() {
		res = recorded(t)
	}
	res.err, res.lasting = t.denied.err, t.denied.lasting
	return res
}
