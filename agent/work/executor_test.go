package work

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"
)

var (
	deployer = executor{namespace: "ns", name: "deployer"}
	// asked is the instant of the passes of these tests.
	asked = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
)

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

func TestWhoTheExecutorIs(t *testing.T) {
	account := &workv1.ManifestWorkSubjectServiceAccount{Namespace: "ns", Name: "deployer"}
	for name, c := range map[string]struct {
		subject workv1.ManifestWorkExecutorSubject
		wrong   string
	}{
		"a ServiceAccount":            {subject: workv1.ManifestWorkExecutorSubject{Type: "ServiceAccount", ServiceAccount: account}},
		"somebody else":               {workv1.ManifestWorkExecutorSubject{Type: "User"}, "only support ServiceAccount type for the executor"},
		"a ServiceAccount left blank": {workv1.ManifestWorkExecutorSubject{Type: "ServiceAccount"}, "the executor service account is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			who, wrong := executorOf(&workv1.ManifestWorkExecutor{Subject: c.subject})
			if c.wrong != "" {
				require.NotNil(t, wrong)
				assert.Equal(t, c.wrong, wrong.message)
				return
			}
			require.Nil(t, wrong)
			assert.Equal(t, "system:serviceaccount:ns:deployer", who.String())
			assert.Equal(t, []string{"system:serviceaccounts", "system:authenticated", "system:serviceaccounts:ns"}, who.groups())
		})
	}
}

// Weakness: W20
func TestWhatAnExecutorNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		task *task
		want []string
	}{
		"an object that goes with its work": {taskOn("configmaps", "x"), []string{"create", "update", "patch", "get", "delete"}},
		"an object that stays":              {taskOn("configmaps", "x", orphanedTask), []string{"create", "update", "patch", "get"}},
		"what is only read":                 {taskOn("configmaps", "x", readOnlyTask), []string{"get"}},
		"what is complete":                  {taskOn("configmaps", "x", frozenTask), []string{"get"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.task.verbs()) })
	}
}

// Row: work 6.1 AU basic, cache, store tests: escalation
func TestOnlyWhatHandsOutRightsIsTried(t *testing.T) {
	assert.True(t, taskOn("", "x", rbacTask).grantsRights())
	assert.False(t, taskOn("", "x", rbacTask, readOnlyTask).grantsRights())
	assert.False(t, taskOn("", "x", rbacTask, frozenTask).grantsRights())
	assert.False(t, taskOn("rolebindings", "x").grantsRights(), "a resource of that name in another group")
	role, binds := taskOn("", "x", rbacTask).binds()
	assert.True(t, binds)
	assert.Equal(t, roleKey{namespace: "app", name: "handed"}, role)
}

// Row: work 6.1 AU basic, cache, store tests: SAR allow/deny
func TestClearanceOf(t *testing.T) {
	all := func(allowed bool) []answer {
		return []answer{{verb: "create", allowed: allowed}, {verb: "get", allowed: allowed}}
	}
	const text = "not allowed to apply the resource  configmaps, app x, will try again in 1m0s; " +
		"system:serviceaccount:ns:deployer lacks "
	for name, c := range map[string]struct {
		task           *task
		answers        []answer
		denied, unread string
		err            error
	}{
		"all is allowed":     {answers: all(true)},
		"nothing is allowed": {answers: all(false), denied: text + "create, get", unread: "system:serviceaccount:ns:deployer is not allowed to get configmaps app/x"},
		"only reading is allowed": {
			answers: []answer{{verb: "create"}, {verb: "get", allowed: true}}, denied: text + "create",
		},
		"a definite no counts though another answer is missing": {
			answers: []answer{{verb: "create"}, {verb: "get", err: assert.AnError}}, denied: text + "create",
			unread: assert.AnError.Error(),
		},
		"without a definite no a missing answer is an error": {
			answers: []answer{{verb: "create", err: assert.AnError}, {verb: "get", allowed: true}}, err: assert.AnError,
		},
		"what is complete stays applied though it must not be read": {
			task: taskOn("configmaps", "x", frozenTask), answers: []answer{{verb: "get"}},
			unread: "system:serviceaccount:ns:deployer is not allowed to get configmaps app/x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.task == nil {
				c.task = taskOn("configmaps", "x")
			}
			got, err := clearanceOf(deployer, c.task, c.answers)
			require.ErrorIs(t, err, c.err)
			assert.Equal(t, c.denied, messageOf(got.denied))
			assert.Equal(t, c.unread, messageOf(got.unread))
		})
	}
}

func messageOf(f *failure) string {
	if f == nil {
		return ""
	}
	return f.message
}

func TestHowLongAClearanceIsBelieved(t *testing.T) {
	id := identity{Resource: "configmaps", Namespace: "app", Name: "x"}
	no := &failure{}
	for name, c := range map[string]struct {
		clearance clearance
		// again is when it is asked for again by itself, after the answer; zero is never.
		again time.Duration
		// until is how long it is believed.
		until time.Duration
	}{
		"an allowance is not asked for again by itself": {until: clearanceLife},
		"a refusal is asked for after a minute": {
			clearance: clearance{denied: no}, again: time.Minute, until: time.Minute,
		},
		"what must not be read is asked for after a minute": {
			clearance: clearance{unread: no}, again: time.Minute, until: time.Minute,
		},
		"right after a change of RBAC the answer may be an old one": {
			clearance: clearance{changed: asked.Add(-10 * time.Millisecond)},
			again:     firstReview, until: firstReview,
		},
		"some time after a change of RBAC it is asked for once more": {
			clearance: clearance{changed: asked.Add(-500 * time.Millisecond)},
			again:     1500 * time.Millisecond, until: 1500 * time.Millisecond,
		},
		"long after a change of RBAC the answer is final": {
			clearance: clearance{changed: asked.Add(-authorizerLag)}, until: clearanceLife,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.clearance.at = asked
			want := time.Time{}
			if c.again > 0 {
				want = asked.Add(c.again)
			}
			assert.Equal(t, want, c.clearance.again(true, id))
			assert.True(t, c.clearance.believed(asked.Add(c.until-1), true, id))
			assert.False(t, c.clearance.believed(asked.Add(c.until), true, id))
		})
	}
	unheard := clearance{at: asked}.again(false, id)
	assert.False(t, unheard.IsZero(), "where no change of RBAC is heard, an allowance is asked for again by itself")
}

// Weakness: W21
func TestWhomAChangeOfRBACConcerns(t *testing.T) {
	bound := func(subjects ...string) binding { return binding{role: roleKey{name: "r"}, subjects: subjects} }
	for name, c := range map[string]struct {
		reach reach
		want  bool
	}{
		"a binding that comes":                      {reach{after: bound(deployer.String())}, true},
		"a binding that goes":                       {reach{before: bound(deployer.String())}, true},
		"a binding that loses the account":          {reach{before: bound(deployer.String()), after: bound("other")}, true},
		"a binding of one of its groups":            {reach{after: bound(groupMark + "system:serviceaccounts:ns")}, true},
		"a binding of all who are authenticated":    {reach{after: bound(groupMark + "system:authenticated")}, true},
		"a binding of another account":              {reach{after: bound("system:serviceaccount:ns:other")}, false},
		"a binding of a user named like its group":  {reach{after: bound("system:authenticated")}, false},
		"a binding in the namespace of the object":  {reach{after: bound(deployer.String()), namespace: "app"}, true},
		"a binding in another namespace":            {reach{after: bound(deployer.String()), namespace: "other"}, false},
		"a role that it is bound to":                {reach{bound: map[string][]binding{"": {bound(deployer.String())}}}, true},
		"a role that it is bound to elsewhere":      {reach{bound: map[string][]binding{"x": {bound(deployer.String())}}}, false},
		"a role that others are bound to":           {reach{bound: map[string][]binding{"": {bound("other")}}}, false},
		"a time in which nothing could be heard of": {reach{everyone: true}, true},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.reach.concerns(deployer, "app")) })
	}
}

// Row: work 6.1 AU basic, cache, store tests: cluster role via RoleBinding
func TestAClusterRoleHoldsWhereItIsBound(t *testing.T) {
	var told []reach
	b := newBindings(func(r reach) { told = append(told, r) })
	ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"}
	one := bindingOf(ref, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "deployer"}}, "ns")
	b.changed(bindingKey{namespace: "ns", name: "b"}, &one)
	b.roleChanged(roleKey{name: "edit"})
	require.Len(t, told, 2)
	for _, r := range told {
		assert.True(t, r.concerns(deployer, "ns"), "a subject without a namespace is of that of its binding")
		assert.False(t, r.concerns(deployer, "app"))
		assert.True(t, r.touches(deployer))
	}
}

// Row: work 6.1 AU basic, cache, store tests: concurrent map safety
func TestGrantsAreUsedByManyAtOnce(t *testing.T) {
	g, _ := newTestGuard(&reviews{allowed: map[string]bool{"get": true}})
	g.grants.wake = func(holder) {}
	group := sync.WaitGroup{}
	for i := range 8 {
		group.Go(func() {
			for range 50 {
				f := executedWork(asked)
				f.holder.name = strconv.Itoa(i % 4)
				g.authorize(t.Context(), f, []task{*taskOn("configmaps", "x")})
				g.bindings.changed(bindingKey{name: strconv.Itoa(i)}, &binding{subjects: []string{deployer.String()}})
				g.bindings.changed(bindingKey{name: strconv.Itoa(i)}, nil)
				g.grants.release(f.holder)
			}
		})
	}
	group.Wait()
	assert.False(t, g.grants.wanted())
}

func TestBindingsTellWhatChanged(t *testing.T) {
	var told []reach
	b := newBindings(func(r reach) { told = append(told, r) })
	role := roleKey{name: "r"}
	b.changed(bindingKey{name: "b"}, &binding{role: role, subjects: []string{deployer.String()}})
	require.Len(t, told, 1)
	b.changed(bindingKey{name: "b"}, &binding{role: role, subjects: []string{deployer.String()}})
	assert.Len(t, told, 1, "its metadata concerns nobody")

	b.roleChanged(role)
	require.Len(t, told, 2)
	assert.True(t, told[1].concerns(deployer, "anywhere"))
	b.roleChanged(roleKey{namespace: "app", name: "r"})
	assert.False(t, told[2].touches(deployer), "a Role is not the ClusterRole of that name")

	told = nil
	for _, from := range []rbacSource{fromRoles, fromClusterRoles, fromRoleBindings, fromClusterRoleBindings} {
		assert.False(t, b.live())
		b.listed(from, nil)
	}
	assert.True(t, b.live())
	require.Len(t, told, 1)
	assert.True(t, told[0].everyone)
	b.roleChanged(role)
	assert.False(t, told[1].touches(deployer), "the list did not have the binding any more")
	b.lost(fromRoles)
	assert.False(t, b.live())
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

// newTestGuard is a guard that hears every change of RBAC, and the works that it woke.
func newTestGuard(r *reviews) (*guard, *[]holder) {
	var woken []holder
	g := &guard{
		access: &access{reviews: r},
		grants: &grants{
			clock: clocktesting.NewFakePassiveClock(asked), holders: map[holder]*grant{},
			wake: func(h holder) { woken = append(woken, h) }, moved: func() {}, dropped: func(executor) {},
		},
	}
	g.bindings = newBindings(g.grants.hear)
	for _, from := range []rbacSource{fromRoles, fromClusterRoles, fromRoleBindings, fromClusterRoleBindings} {
		g.bindings.listed(from, nil)
	}
	return g, &woken
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

// Row: work 6.1 AU basic, cache, store tests: cache hit; RBAC event refresh
// Weakness: W42
func TestAnswersAreRemembered(t *testing.T) {
	api := &reviews{allowed: map[string]bool{"get": true}}
	g, woken := newTestGuard(api)
	pass := func(at time.Duration) *task {
		f := executedWork(asked.Add(at))
		tasks := []task{*taskOn("configmaps", "x", func(t *task) { t.now = f.now })}
		g.authorize(t.Context(), f, tasks)
		return &tasks[0]
	}
	first := pass(0)
	require.NotNil(t, first.denied)
	require.NoError(t, first.denied.unread)
	assert.Len(t, api.asked, 5)
	assert.Equal(t, asked.Add(time.Minute), first.recheck)
	assert.NotNil(t, pass(30*time.Second).denied)
	assert.Len(t, api.asked, 5, "within the minute nothing is asked again")

	api.allowed = map[string]bool{"create": true, "update": true, "patch": true, "get": true, "delete": true}
	assert.Nil(t, pass(time.Minute).denied)
	assert.Len(t, api.asked, 10)
	assert.Nil(t, pass(3*time.Minute).denied)
	assert.Len(t, api.asked, 10)

	g.bindings.changed(bindingKey{namespace: "other", name: "b"}, &binding{subjects: []string{deployer.String()}})
	assert.Nil(t, pass(3*time.Minute).denied)
	assert.Len(t, api.asked, 10, "a binding in another namespace changes nothing here")
	*woken = nil
	g.bindings.changed(bindingKey{namespace: "app", name: "b"}, &binding{subjects: []string{deployer.String()}})
	assert.Equal(t, []holder{{name: "w"}}, *woken)
	api.allowed = nil
	assert.NotNil(t, pass(3*time.Minute).denied)
	assert.Len(t, api.asked, 15)
}

func TestAnAnswerFromBeforeAChangeIsNotRemembered(t *testing.T) {
	api := &reviews{allowed: map[string]bool{"get": true}}
	g, _ := newTestGuard(api)
	h := holder{name: "w"}
	epoch := g.grants.claim(h, deployer)
	g.bindings.changed(bindingKey{name: "b"}, &binding{subjects: []string{deployer.String()}})
	key := question{id: identity{Name: "x"}}
	g.grants.note(h, epoch, key, clearance{at: asked})
	_, known := g.grants.look(h, key)
	assert.False(t, known)
	g.grants.note(h, g.grants.claim(h, deployer), key, clearance{at: asked})
	kept, known := g.grants.look(h, key)
	assert.True(t, known)
	assert.Equal(t, asked, kept.changed)
}

func TestAnotherExecutorIsAskedAboutAnew(t *testing.T) {
	g, _ := newTestGuard(&reviews{})
	var gone []executor
	g.grants.dropped = func(e executor) { gone = append(gone, e) }
	h, key := holder{name: "w"}, question{id: identity{Name: "x"}}
	g.grants.note(h, g.grants.claim(h, deployer), key, clearance{at: asked})
	g.grants.claim(h, executor{namespace: "ns", name: "other"})
	_, known := g.grants.look(h, key)
	assert.False(t, known)
	assert.Equal(t, []executor{deployer}, gone)
	assert.True(t, g.grants.wanted())
	g.grants.release(h)
	assert.False(t, g.grants.wanted())
}

func TestAnErrorOfTheReviewIsTriedAgainAndForgetsNothing(t *testing.T) {
	g, _ := newTestGuard(&reviews{failure: assert.AnError})
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
	g, _ := newTestGuard(api)
	f := executedWork(asked)
	f.work.Spec.Executor.Subject.ServiceAccount = nil
	tasks := []task{*taskOn("configmaps", "x")}
	g.authorize(t.Context(), f, tasks)
	res := tasks[0].refused()
	require.EqualError(t, res.err, "the executor service account is nil")
	assert.True(t, res.lasting)
	assert.Equal(t, presenceUnknown, res.presence)
	assert.Empty(t, api.asked)
	assert.False(t, g.grants.wanted())
}

func TestARefusalIsNotTheWishOfTheManifest(t *testing.T) {
	open, closed := taskOn("configmaps", "x"), taskOn("configmaps", "x")
	closed.obey(clearance{denied: &failure{message: "no"}})
	assert.NotEqual(t, open.wish, closed.wish, "so that it is applied when it is allowed")
	before := open.wish
	open.obey(clearance{})
	assert.Equal(t, before, open.wish)
	assert.Nil(t, open.denied)
}
