package work

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/executor"
)

// asked is the instant of the passes of these tests.
var asked = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// taskOn is a task on an object in the namespace "app".
func taskOn(resource, name string, change ...func(*task)) *task {
	t := &task{
		manifest: &manifest{
			resource:  schema.GroupVersionResource{Version: "v1", Resource: resource},
			namespace: "app", name: name, owned: true,
			option: option{strategy: workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}},
		},
		now: asked,
	}
	t.wish.content[5] = 1
	for _, one := range change {
		one(t)
	}
	return t
}

func frozenTask(t *task)   { t.frozen = true }
func orphanedTask(t *task) { t.owned = false }
func readOnlyTask(t *task) { t.option.strategy.Type = workv1.UpdateStrategyTypeReadOnly }

func rbacTask(t *task) {
	t.resource = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	t.raw = []byte(`{"roleRef":{"kind":"Role","name":"handed"}}`)
}

// Weakness: W20
func TestWhatAnExecutorNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		task *task
		want executor.Verbs
	}{
		"an object that goes with its work": {taskOn("configmaps", "x"), executor.VerbsOwn},
		"an object that stays":              {taskOn("configmaps", "x", orphanedTask), executor.VerbsApply},
		"what is only read":                 {taskOn("configmaps", "x", readOnlyTask), executor.VerbsRead},
		"what is complete":                  {taskOn("configmaps", "x", frozenTask), executor.VerbsRead},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.task.verbs()) })
	}
}

// reviews plays the API server: it allows what is in the set and counts the questions.
type reviews struct {
	authorizationclient.SubjectAccessReviewInterface
	mu      sync.Mutex
	allowed map[string]bool
	failure error
	asked   []string
}

func (r *reviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions,
) (*authorizationv1.SubjectAccessReview, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := review.Spec.ResourceAttributes
	r.asked = append(r.asked, a.Verb+" "+a.Name)
	review.Status.Allowed = r.allowed[a.Verb]
	return review, r.failure
}

// newTestAuthorizer is an authorizer that does not watch RBAC.
func newTestAuthorizer(r *reviews) *authorizer {
	return &authorizer{Authorizer: executor.New(executor.Options{
		Reviews: r, Clock: clocktesting.NewFakePassiveClock(asked), Wake: func(string) {},
	})}
}

// executedWork is the facts of a work with an executor.
func executedWork(now time.Time) *facts {
	return &facts{now: now, holder: holder{name: "w"}, work: &workv1.ManifestWork{Spec: workv1.ManifestWorkSpec{
		Executor: &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			Type:           "ServiceAccount",
			ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: "ns", Name: "deployer"},
		}},
	}}}
}

func TestAnErrorOfTheReviewIsTriedAgainAndForgetsNothing(t *testing.T) {
	g := newTestAuthorizer(&reviews{failure: assert.AnError})
	tasks := []task{*taskOn("configmaps", "x"), *taskOn("configmaps", "y", func(t *task) {
		t.prior = record{checked: asked, exists: true, uid: "uid"}
	})}
	g.authorize(t.Context(), executedWork(asked), tasks)
	fresh, known := tasks[0].refused(), tasks[1].refused()
	require.ErrorIs(t, fresh.err, assert.AnError)
	assert.False(t, fresh.lasting)
	assert.Equal(t, presenceUnknown, fresh.presence)
	require.ErrorIs(t, known.err, assert.AnError)
	assert.Equal(t, presencePresent, known.presence, "what was known of the object before is still known")
	assert.False(t, tasks[0].writes())
}

func TestAWrongExecutorAppliesNothingAndAsksNobody(t *testing.T) {
	api := &reviews{}
	g := newTestAuthorizer(api)
	f := executedWork(asked)
	f.work.Spec.Executor.Subject.ServiceAccount = nil
	tasks := []task{*taskOn("configmaps", "x")}
	g.authorize(t.Context(), f, tasks)
	res := tasks[0].refused()
	require.EqualError(t, res.err, "the executor service account is nil")
	assert.True(t, res.lasting)
	assert.Equal(t, presenceUnknown, res.presence)
	assert.Empty(t, api.asked)
}

func TestARefusalIsNotTheWishOfTheManifest(t *testing.T) {
	open, closed := taskOn("configmaps", "x"), taskOn("configmaps", "x")
	closed.follow(executor.Decision{Verdict: executor.Denied, Err: assert.AnError})
	assert.NotEqual(t, open.wish, closed.wish, "so that it is applied when it is allowed")
	before := open.wish
	open.follow(executor.Decision{Verdict: executor.Allowed})
	assert.Equal(t, before, open.wish)
	assert.Nil(t, open.denied)
}

// What is complete stays applied though it must not be read.
func TestADeniedReadOfWhatIsCompleteIsNoFailure(t *testing.T) {
	one := taskOn("configmaps", "x", frozenTask)
	one.follow(executor.Decision{Verdict: executor.Denied, Err: assert.AnError, ReadErr: assert.AnError})
	require.NoError(t, one.denied.err)
	require.EqualError(t, one.denied.unread, assert.AnError.Error())
	assert.True(t, one.denied.lasting)
}
