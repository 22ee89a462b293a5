package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/spoke"
)

// fakeReviews allows the verbs in a set and records the questions.
type fakeReviews struct {
	authorizationclient.SubjectAccessReviewInterface
	mu      sync.Mutex
	allowed map[string]bool
	failure error
	asked   []authorizationv1.SubjectAccessReviewSpec
}

func (r *fakeReviews) Create(_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions,
) (*authorizationv1.SubjectAccessReview, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, review.Spec)
	review.Status.Allowed = r.allowed[review.Spec.ResourceAttributes.Verb]
	return review, r.failure
}

// allow is the set of all verbs of a question.
func allow(verbs Verbs) map[string]bool {
	set := map[string]bool{}
	for _, verb := range verbs.list() {
		set[verb] = true
	}
	return set
}

// testAuthorizer is an Authorizer that sees every change of RBAC, and what it does besides.
type testAuthorizer struct {
	*Authorizer
	woken []string
	// status answers the dry runs; dryRuns are their queries with the impersonated user.
	status  metav1.Status
	dryRuns []string
}

// newTest returns an Authorizer that asks fake reviews.
func newTest(t *testing.T, reviews *fakeReviews) *testAuthorizer {
	t.Helper()
	a := &testAuthorizer{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.dryRuns = append(a.dryRuns, r.Header.Get("Impersonate-User")+" "+r.Method+" "+r.URL.String())
		w.Header().Set("Content-Type", "application/json")
		if a.status.Code == 0 {
			_, _ = fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap"}`)
			return
		}
		w.WriteHeader(int(a.status.Code))
		a.status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		_ = json.NewEncoder(w).Encode(a.status)
	}))
	t.Cleanup(server.Close)
	a.Authorizer = New(Options{
		Reviews: reviews, Clock: clocktesting.NewFakePassiveClock(noon),
		Wake: func(work string) { a.woken = append(a.woken, work) },
		Impersonate: func(user string) (spoke.Client, error) {
			config := &rest.Config{Host: server.URL, Impersonate: rest.ImpersonationConfig{UserName: user}}
			transport, err := rest.HTTPClientFor(config)
			require.NoError(t, err)
			client, err := spoke.NewClient(config, transport)
			return client.DryRun(), err
		},
	})
	for _, from := range []rbacSource{roles, clusterRoles, roleBindings, clusterRoleBindings} {
		a.rbac.listed(from, nil)
	}
	return a
}

// decideAt asks one question about the work w, some time after noon.
func (a *testAuthorizer) decideAt(t *testing.T, after time.Duration, q Question) Decision {
	t.Helper()
	return a.Begin("w", deployer, noon.Add(after)).Decide(t.Context(), []Question{q})[0]
}

// bind creates or changes a ClusterRoleBinding or RoleBinding of the executor.
func (a *testAuthorizer) bind(namespace string) {
	a.rbac.setBinding(bindingKey{Namespace: namespace, Name: "b"},
		&binding{role: roleKey{Name: "r"}, subjects: []string{deployer.String()}})
}

// Shows: work/executor-cached
func TestDecisionsAreCached(t *testing.T) {
	api := &fakeReviews{allowed: allow(VerbsRead)}
	a := newTest(t, api)
	q := configMap("x", VerbsOwn)
	first := a.decideAt(t, 0, q)
	assert.Equal(t, Denied, first.Verdict)
	require.NoError(t, first.ReadErr)
	assert.Len(t, api.asked, 5)
	assert.Equal(t, noon.Add(time.Minute), first.Recheck)
	again := a.decideAt(t, 30*time.Second, q)
	assert.Equal(t, Denied, again.Verdict)
	assert.Equal(t, noon.Add(time.Minute), again.Recheck)
	assert.Len(t, api.asked, 5, "within the minute nothing is asked again")

	api.allowed = allow(VerbsOwn)
	assert.Equal(t, Allowed, a.decideAt(t, time.Minute, q).Verdict)
	assert.Len(t, api.asked, 10)
	assert.Equal(t, Allowed, a.decideAt(t, 3*time.Minute, q).Verdict)
	assert.Len(t, api.asked, 10)

	a.bind("other")
	assert.Equal(t, Allowed, a.decideAt(t, 3*time.Minute, q).Verdict)
	assert.Len(t, api.asked, 10, "a binding in another namespace changes nothing here")
	a.woken = nil
	a.bind("app")
	assert.Equal(t, []string{"w"}, a.woken)
	api.allowed = nil
	assert.Equal(t, Denied, a.decideAt(t, 3*time.Minute, q).Verdict)
	assert.Len(t, api.asked, 15)
}

func TestAReviewNamesTheExecutorAndTheObject(t *testing.T) {
	api := &fakeReviews{}
	a := newTest(t, api)
	q := Question{
		Object: manifest.ID{Group: "apps", Resource: "deployments", Namespace: "app", Name: "x"}, Version: "v1", Verbs: VerbsRead,
	}
	a.decideAt(t, 0, q)
	assert.Equal(t, []authorizationv1.SubjectAccessReviewSpec{{
		User: "system:serviceaccount:ns:deployer", Groups: deployer.groups(),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "apps", Version: "v1", Resource: "deployments", Namespace: "app", Name: "x", Verb: "get",
		},
	}}, api.asked)
}

// A decision is valid for the same question only: the same object, desired state and verbs.
// Shows: work/executor-same-request
func TestADecisionIsForTheSameQuestionOnly(t *testing.T) {
	base := configMap("x", VerbsOwn)
	changed := func(change func(*Question)) Question {
		q := base
		change(&q)
		return q
	}
	for name, c := range map[string]struct {
		allowed       Verbs
		before, after Question
		denied, asked bool
	}{
		"the same question": {allowed: VerbsOwn, before: base, after: base},
		"an object that was only read is applied": {
			VerbsRead, configMap("x", VerbsRead), base, true, true,
		},
		"an object that was applied is only read": {VerbsRead, base, configMap("x", VerbsRead), false, true},
		"an object that stays is to be deleted with its work": {
			VerbsApply, configMap("x", VerbsApply), base, true, true,
		},
		"another desired state": {VerbsOwn, base, changed(func(q *Question) { q.Desired[9]++ }), false, true},
		"another version":       {VerbsOwn, base, changed(func(q *Question) { q.Version = "v2" }), false, true},
		"another name":          {VerbsOwn, base, changed(func(q *Question) { q.Object.Name = "y" }), false, true},
		"another namespace":     {VerbsOwn, base, changed(func(q *Question) { q.Object.Namespace = "y" }), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			api := &fakeReviews{allowed: allow(c.allowed)}
			a := newTest(t, api)
			a.decideAt(t, 0, c.before)
			n := len(api.asked)
			assert.Equal(t, c.denied, a.decideAt(t, time.Second, c.after).Verdict != Allowed)
			assert.Equal(t, c.asked, len(api.asked) > n)
		})
	}
}

func TestAFailedReviewIsNotCached(t *testing.T) {
	api := &fakeReviews{failure: assert.AnError}
	a := newTest(t, api)
	q := configMap("x", VerbsRead)
	d := a.decideAt(t, 0, q)
	assert.Equal(t, Unknown, d.Verdict)
	require.ErrorIs(t, d.Err, assert.AnError)
	require.ErrorContains(t, d.Err, "asking whether system:serviceaccount:ns:deployer may get configmaps app/x")
	require.ErrorIs(t, d.ReadErr, assert.AnError)
	a.decideAt(t, 0, q)
	assert.Len(t, api.asked, 2)
}

func TestQuestionsThatAreNotAskedAnyMoreAreForgotten(t *testing.T) {
	api := &fakeReviews{allowed: allow(VerbsOwn)}
	a := newTest(t, api)
	x, y := configMap("x", VerbsRead), configMap("y", VerbsRead)
	pass := func(questions ...Question) int {
		before := len(api.asked)
		a.Begin("w", deployer, noon).Decide(t.Context(), questions)
		return len(api.asked) - before
	}
	assert.Equal(t, 2, pass(x, y))
	assert.Equal(t, 0, pass(y, x), "in any order")
	assert.Equal(t, 0, pass(x))
	assert.Equal(t, 1, pass(x, y))
}

func TestAReviewFromBeforeAChangeIsNotCached(t *testing.T) {
	api := &fakeReviews{allowed: allow(VerbsOwn)}
	a := newTest(t, api)
	q := configMap("x", VerbsRead)
	before := a.Begin("w", deployer, noon)
	a.bind("")
	assert.Equal(t, Allowed, before.Decide(t.Context(), []Question{q})[0].Verdict)
	_, known := a.cache.get("w", q)
	assert.False(t, known)
	d := a.decideAt(t, 0, q)
	kept, known := a.cache.get("w", q)
	assert.True(t, known)
	assert.Equal(t, noon, kept.changed)
	assert.Equal(t, noon.Add(firstReview), d.Recheck, "the authorizer of the API server may lag behind")
}

// The first review of a work right after a change of RBAC may be outdated, too, although the work was not there then.
func TestAWorkThatComesAfterAChangeKnowsOfIt(t *testing.T) {
	a := newTest(t, &fakeReviews{allowed: allow(VerbsOwn)})
	a.bind("")
	assert.Equal(t, noon.Add(firstReview), a.decideAt(t, 0, configMap("x", VerbsRead)).Recheck)
}

func TestAnotherExecutorIsAskedAboutAnew(t *testing.T) {
	api := &fakeReviews{allowed: allow(VerbsOwn)}
	a := newTest(t, api)
	q := configMap("x", VerbsRead)
	a.decideAt(t, 0, q)
	s := a.Begin("w", ServiceAccount{Namespace: "ns", Name: "other"}, noon)
	s.Decide(t.Context(), []Question{q})
	require.Len(t, api.asked, 2)
	assert.Equal(t, "system:serviceaccount:ns:other", api.asked[1].User)
	assert.Equal(t, "system:serviceaccount:ns:other", s.User())
}

func TestTheAuthorizerIsUsedWhileAWorkHasAnExecutor(t *testing.T) {
	a := newTest(t, &fakeReviews{})
	assert.False(t, a.cache.used())
	a.Begin("v", deployer, noon)
	assert.True(t, a.cache.used())
	assert.Len(t, a.watcher.usedChanged, 1)
	<-a.watcher.usedChanged
	a.Begin("w", deployer, noon)
	assert.Empty(t, a.watcher.usedChanged)
	a.Forget("unknown")
	a.Forget("v")
	assert.True(t, a.cache.used())
	assert.Empty(t, a.watcher.usedChanged)
	a.Forget("w")
	assert.False(t, a.cache.used())
	assert.Len(t, a.watcher.usedChanged, 1)
}

// The impersonating client of an executor lasts as long as a work has that executor.
func TestClientsAreForgottenWithTheirExecutor(t *testing.T) {
	a := newTest(t, &fakeReviews{})
	clients := func() int { return len(a.api.clients) }
	for _, work := range []string{"v", "w"} {
		_, err := a.Begin(work, deployer, noon).Impersonate()
		require.NoError(t, err)
	}
	assert.Equal(t, 1, clients())
	a.Forget("v")
	assert.Equal(t, 1, clients())
	a.Begin("w", ServiceAccount{Namespace: "ns", Name: "other"}, noon)
	assert.Equal(t, 0, clients())
}

// Shows: work/executor-concurrent
func TestTheAuthorizerIsUsedByManyAtOnce(t *testing.T) {
	api := &fakeReviews{allowed: allow(VerbsRead)}
	var mu sync.Mutex
	woken := map[string]int{}
	a := New(Options{
		Reviews: api, Clock: clocktesting.NewFakePassiveClock(noon),
		Wake: func(work string) {
			mu.Lock()
			defer mu.Unlock()
			woken[work]++
		},
	})
	const works, rounds = 8, 50
	group := sync.WaitGroup{}
	for i := range works {
		group.Go(func() {
			work := strconv.Itoa(i)
			for range rounds {
				s := a.Begin(work, deployer, noon)
				for _, d := range s.Decide(t.Context(), []Question{configMap("x", VerbsRead), configMap("y", VerbsOwn)}) {
					assert.NotEmpty(t, d.Verdict)
				}
				a.rbac.setBinding(bindingKey{Name: work}, &binding{subjects: []string{deployer.String()}})
				a.rbac.setBinding(bindingKey{Name: work}, nil)
			}
		})
	}
	group.Wait()
	for i := range works {
		work := strconv.Itoa(i)
		assert.GreaterOrEqual(t, woken[work], 2*rounds, "every change concerned every work")
		d := a.Begin(work, deployer, noon).Decide(t.Context(), []Question{configMap("x", VerbsRead), configMap("y", VerbsOwn)})
		assert.Equal(t, []Verdict{Allowed, Denied}, []Verdict{d[0].Verdict, d[1].Verdict})
		if i < works-1 {
			a.Forget(work)
		}
	}
	assert.True(t, a.cache.used(), "one work is left")
	a.Forget(strconv.Itoa(works - 1))
	assert.False(t, a.cache.used())
	assert.Empty(t, a.rbac.bindings)
}

func TestAReviewWithoutAnAnswerIsAskedAgainAtOnce(t *testing.T) {
	request := configMap("x", VerbsOwn)
	request.Object.Group, request.Object.Resource = "certificates.k8s.io", "certificatesigningrequests"
	for sentence, q := range map[string]Question{
		"a ConfigMap": configMap("x", VerbsOwn), "a certificate request": request,
	} {
		t.Run(sentence, func(t *testing.T) {
			api := &fakeReviews{allowed: allow(VerbsOwn), failure: assert.AnError}
			a := newTest(t, api)
			require.Error(t, a.decideAt(t, 0, q).ReadErr)
			api.failure = nil
			require.NoError(t, a.decideAt(t, time.Second, q).ReadErr, "it may be read")
		})
	}
}
