package work_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// allVerbs are those that an executor needs for an object that goes with its work.
var allVerbs = []string{"create", "update", "patch", "get", "delete"}

// executed makes a work whose executor is the ServiceAccount "executor" in the namespace of the test.
func (e *env) executed(name string, manifests ...any) *workv1.ManifestWork {
	e.Helper()
	w := e.work(name, manifests...)
	w.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
		Type:           workv1.ExecutorSubjectTypeServiceAccount,
		ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: e.cluster, Name: "executor"},
	}}
	return w
}

// rule grants verbs on a resource of a group.
func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// role makes a Role in the namespace of the test.
func (e *env) role(name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	e.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: name}, Rules: rules}
	e.create(role)
	return role
}

// bind binds a Role of the namespace of the test to subjects.
func (e *env) bind(role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	e.Helper()
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: role}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	}
	e.create(binding)
	bound := &rbacv1.Role{}
	if !e.get(bound, e.cluster, role) {
		return binding
	}
	for _, rule := range bound.Rules {
		for _, subject := range subjects {
			e.eventually("the API server knows what "+subject.Name+" may do", func() bool { return e.allowed(subject, rule) })
		}
	}
	return binding
}

// allowed asks the API server whether a subject has the first right of a rule: it hears of roles and bindings by itself,
// and the first answer about an executor would be told otherwise.
func (e *env) allowed(subject rbacv1.Subject, rule rbacv1.PolicyRule) bool {
	e.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: subject.Name, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: e.cluster, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0],
		},
	}}
	switch subject.Kind {
	case rbacv1.ServiceAccountKind:
		review.Spec.User = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	case rbacv1.GroupKind:
		review.Spec.User, review.Spec.Groups = "somebody", []string{subject.Name}
	}
	if len(rule.ResourceNames) > 0 {
		review.Spec.ResourceAttributes.Name = rule.ResourceNames[0]
	}
	return e.Create(e.Context(), review) == nil && review.Status.Allowed
}

// account is the executor as the subject of a binding.
func (e *env) account() rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: e.cluster, Name: "executor"}
}

// applies waits until each manifest of the work, at its present generation, is applied or not as given.
func (e *env) applies(w *workv1.ManifestWork, want ...metav1.ConditionStatus) {
	e.Helper()
	suite.Eventually(e, suite.True(fmt.Sprintf("the manifests of %s should be applied: %v", w.Name, want), func() bool {
		if e.Get(e.Context(), client.ObjectKeyFromObject(w), w) != nil || len(w.Status.ResourceStatus.Manifests) != len(want) {
			return false
		}
		for i, status := range want {
			applied := manifestCondition(w, i, workv1.ManifestApplied)
			if applied.Status != status || applied.ObservedGeneration != w.Generation {
				return false
			}
		}
		return true
	}))
}

// secret is a Secret manifest in the namespace of the test.
func (e *env) secret(name string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: name},
		StringData: map[string]string{"password": "swordfish"},
	}
}

const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
)

// Shows: work/executor-permissions
func TestAnExecutorLimitsWhatIsApplied(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.executed("w", e.configMap("one", map[string]string{"a": "1"}), e.secret("two"))
	e.create(w)
	e.applies(w, no, no)
	message := manifestCondition(w, 0, workv1.ManifestApplied).Message
	assert.Contains(t, message, "Failed to apply manifest: not allowed to apply the resource  configmaps, "+
		e.cluster+" one, will try again in 1m0s")
	assert.Contains(t, message, "lacks create, update, patch, get, delete")
	assert.Equal(t, workv1.AppliedManifestFailed, manifestCondition(w, 0, workv1.ManifestApplied).Reason)
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "one"))

	e.role("maps", rule("", "configmaps", allVerbs...))
	e.bind("maps", e.account())
	e.applies(w, yes, no)
	assert.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "one"))
	assert.False(t, e.get(&corev1.Secret{}, e.cluster, "two"))

	e.role("secrets", rule("", "secrets", allVerbs...))
	e.bind("secrets", e.account())
	e.settled(w)
	e.applies(w, yes, yes)
	assert.True(t, e.get(&corev1.Secret{}, e.cluster, "two"))
}

// Shows: work/executor-delete
func TestOnlyWhatGoesWithTheWorkNeedsDelete(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	e.role("maps", rule("", "configmaps", "create", "update", "patch", "get"))
	e.bind("maps", e.account())
	policies := map[string]*workv1.DeleteOption{
		"foreground": {PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground},
		"orphan":     {PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan},
		"selective": {
			PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
			SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{{
				Resource: "configmaps", Namespace: e.cluster, Name: "selective-kept",
			}}},
		},
	}
	want := map[string][]metav1.ConditionStatus{"foreground": {no, no}, "orphan": {yes, yes}, "selective": {yes, no}}
	for name, option := range policies {
		w := e.executed(name, e.configMap(name+"-kept", nil), e.configMap(name+"-owned", nil))
		w.Spec.DeleteOption = option
		e.create(w)
		e.applies(w, want[name]...)
	}
	e.edit(&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: "orphan"}},
		func(w *workv1.ManifestWork) { w.Spec.DeleteOption = nil })
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: "orphan"}}
	e.applies(w, no, no)
	assert.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "orphan-kept"), "what was applied stays")
}

// rbacRule lets an executor write Roles and RoleBindings.
func rbacRule() rbacv1.PolicyRule {
	r := rule(rbacv1.GroupName, "roles", allVerbs...)
	r.Resources = append(r.Resources, "rolebindings")
	return r
}

// podReader is the manifest of a Role that lets its holders read pods.
func (e *env) podReader(name string) *rbacv1.Role {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: name},
		Rules:      []rbacv1.PolicyRule{rule("", "pods", "get")},
	}
}

// Shows: work/executor-escalation
func TestAnExecutorCannotHandOutWhatItDoesNotHave(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	e.role("rbac", rbacRule())
	e.bind("rbac", e.account())
	existing := e.podReader("existing")
	e.create(existing)
	w := e.executed("w", e.podReader("fresh"), e.podReader("existing"))
	e.create(w)
	e.applies(w, no, no)
	assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message,
		"not allowed to apply the resource rbac.authorization.k8s.io roles, "+e.cluster+
			" fresh, error: permission escalation, will try again in 1m0s")
	assert.False(t, e.get(&rbacv1.Role{}, e.cluster, "fresh"))
	require.True(t, e.get(existing, e.cluster, "existing"))
	assert.Empty(t, existing.OwnerReferences)

	e.role("pods", rule("", "pods", "get"))
	e.bind("pods", e.account())
	e.applies(w, yes, yes)
	assert.True(t, e.get(&rbacv1.Role{}, e.cluster, "fresh"))
	require.True(t, e.get(existing, e.cluster, "existing"))
	assert.Len(t, existing.OwnerReferences, 1)
}

// The rights that a binding hands out are those of its role, also when that changes later.
func TestABindingIsAskedAboutAgainWhenItsRoleChanges(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	e.role("rbac", rbacRule())
	e.bind("rbac", e.account())
	handed := e.role("handed")
	binding := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: "handed"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "handed"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.cluster, Name: "somebody"}},
	}
	w := e.executed("w", binding)
	e.create(w)
	e.settled(w)

	handed.Rules = []rbacv1.PolicyRule{rule("", "secrets", "get")}
	require.NoError(t, e.Update(t.Context(), handed))
	e.applies(w, no)
	assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, "permission escalation")
	assert.True(t, e.get(&rbacv1.RoleBinding{}, e.cluster, "handed"), "what was applied stays")
}

// A binding of a role that does not exist is refused to an executor without bind, in other words of the API server. The
// object is reported as it is all the same, and the binding is applied when there is the role.
func TestABindingOfAMissingRoleIsRefusedAndRead(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	e.role("rbac", rbacRule())
	e.bind("rbac", e.account())
	binding := func(name string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "absent"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.cluster, Name: "somebody"}},
		}
	}
	e.create(binding("existing"))
	w := e.executed("w", binding("existing"), binding("fresh"))
	e.create(w)
	e.applies(w, no, no)
	message := manifestCondition(w, 0, workv1.ManifestApplied).Message
	assert.Contains(t, message, "existing, error: permission escalation, will try again in 1m0s; system:serviceaccount:"+
		e.cluster+":executor may not bind Role "+e.cluster+"/absent, which does not exist, without the right to bind it")
	assert.Equal(t, "Resource is available", manifestCondition(w, 0, workv1.ManifestAvailable).Message)
	assert.Equal(t, "Resource is not available", manifestCondition(w, 1, workv1.ManifestAvailable).Message)
	e.role("absent")
	e.settled(w)
}

// Shows: work/executor-permission-change, work/executor-changes-heard, work/executor-same-request
func TestRightsThatChangeAreHeardOf(t *testing.T) {
	t.Parallel()
	user := func(e *env) rbacv1.Subject {
		return rbacv1.Subject{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:serviceaccount:" + e.cluster + ":executor",
		}
	}
	group := func(e *env) rbacv1.Subject {
		return rbacv1.Subject{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + e.cluster,
		}
	}
	for name, c := range map[string]struct {
		subject func(*env) rbacv1.Subject
		revoke  func(*env, *rbacv1.Role, *rbacv1.RoleBinding) error
	}{
		"the binding of the account is deleted": {(*env).account, func(e *env, _ *rbacv1.Role, b *rbacv1.RoleBinding) error {
			return e.Delete(e.Context(), b)
		}},
		"the account is taken from a binding that stays": {(*env).account,
			func(e *env, _ *rbacv1.Role, b *rbacv1.RoleBinding) error {
				b.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.cluster, Name: "another"}}
				return e.Update(e.Context(), b)
			}},
		"the account is bound as a group": {group, func(e *env, _ *rbacv1.Role, b *rbacv1.RoleBinding) error {
			b.Subjects = nil
			return e.Update(e.Context(), b)
		}},
		"the account is bound as a user": {user, func(e *env, _ *rbacv1.Role, b *rbacv1.RoleBinding) error {
			return e.Delete(e.Context(), b)
		}},
		"the role loses a verb": {(*env).account, func(e *env, r *rbacv1.Role, _ *rbacv1.RoleBinding) error {
			r.Rules[0].Verbs = []string{"create", "get", "delete", "patch"}
			return e.Update(e.Context(), r)
		}},
		"the role is deleted": {(*env).account, func(e *env, r *rbacv1.Role, _ *rbacv1.RoleBinding) error {
			return e.Delete(e.Context(), r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t)
			e.start()
			w := e.executed("w", e.configMap("one", map[string]string{"a": "1"}))
			e.create(w)
			e.applies(w, no)
			role := e.role("maps", rule("", "configmaps", allVerbs...))
			binding := e.bind("maps", c.subject(e))
			e.settled(w)

			require.NoError(t, c.revoke(e, role, binding))
			e.applies(w, no)
			require.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "one"), "what was applied stays")
			e.edit(w, func(w *workv1.ManifestWork) {
				w.Spec.Workload.Manifests = e.manifests(e.configMap("one", map[string]string{"a": "2"}))
			})
			e.applies(w, no)
			one := &corev1.ConfigMap{}
			require.True(t, e.get(one, e.cluster, "one"))
			assert.Equal(t, "1", one.Data["a"], "nothing is written any more")
		})
	}
}

// Shows: work/executor-reads
func TestWhatAnExecutorMayNotReadIsNotReadForIt(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	e.create(e.secret("treasure"))
	peek := func(name string) *workv1.ManifestWork {
		w := e.executed(name, e.secret("treasure"))
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "secrets", Namespace: e.cluster, Name: "treasure"},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly},
			FeedbackRules: []workv1.FeedbackRule{{
				Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "loot", Path: ".data.password"}},
			}},
		}}
		return w
	}
	w := peek("w")
	e.create(w)
	e.applies(w, no)
	e.quiet(a)
	require.True(t, e.get(w, e.cluster, "w"))
	assert.Empty(t, w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values)
	available := manifestCondition(w, 0, workv1.ManifestAvailable)
	assert.Equal(t, metav1.ConditionUnknown, available.Status, "whether it exists is not told either")
	assert.Equal(t, "FetchingResourceFailed", available.Reason)
	assert.Contains(t, available.Message, "system:serviceaccount:"+e.cluster+":executor is not allowed to get secrets ")
	for _, line := range a.spoke.since(0) {
		assert.NotContains(t, line, "treasure")
	}

	// Who may read it may have it read, and needs nothing more for that (W20).
	e.role("secrets", rule("", "secrets", "get"))
	e.bind("secrets", e.account())
	e.applies(w, yes)
	e.settled(w)
	require.Len(t, w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values, 1)
}

// What an executor may read but not write is reported as it is, and not written.
func TestWhatAnExecutorMayOnlyReadIsOnlyRead(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	e.create(e.configMap("one", map[string]string{"a": "1"}))
	e.role("maps", rule("", "configmaps", "get"))
	e.bind("maps", e.account())
	w := e.executed("w", e.configMap("one", map[string]string{"a": "2"}), e.configMap("two", nil))
	e.create(w)
	e.applies(w, no, no)
	assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, "lacks create, update, patch, delete")
	assert.Equal(t, yes, manifestCondition(w, 0, workv1.ManifestAvailable).Status)
	assert.Equal(t, no, manifestCondition(w, 1, workv1.ManifestAvailable).Status)
	one := &corev1.ConfigMap{}
	require.True(t, e.get(one, e.cluster, "one"))
	assert.Equal(t, "1", one.Data["a"])
	assert.Empty(t, one.OwnerReferences)
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work should go", func() bool { return !e.get(w, e.cluster, "w") })
	assert.True(t, e.get(one, e.cluster, "one"), "what the work never made is not taken down with it")
}

// Who takes the executor from a work gives it the rights of the agent.
func TestAnExecutorMayComeAndGo(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.start()
	w := e.executed("w", e.configMap("one", nil))
	e.create(w)
	e.applies(w, no)
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Executor = nil })
	e.settled(w)
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Executor = e.executed("x").Spec.Executor })
	e.applies(w, no)
	assert.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "one"))
	// The deletion of a work asks nobody (docs/reference/work.md, "Executors"): what it made goes.
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the work should go", func() bool { return !e.get(w, e.cluster, "w") })
	assert.False(t, e.get(&corev1.ConfigMap{}, e.cluster, "one"))
}

// watches remembers which kinds of RBAC an agent watches, and as whom it poses.
type watches struct {
	mu    sync.Mutex
	open  map[string]int
	poses []string
}

func (w *watches) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if who := req.Header.Get("Impersonate-User"); who != "" {
			w.mu.Lock()
			w.poses = append(w.poses, req.Method+" "+req.URL.RequestURI()+" as "+who)
			w.mu.Unlock()
		}
		path, found := strings.CutPrefix(req.URL.Path, "/apis/rbac.authorization.k8s.io/v1/")
		if !found || req.URL.Query().Get("watch") != "true" || strings.Contains(path, "/") {
			return next.RoundTrip(req)
		}
		w.count(path, 1)
		go func() {
			<-req.Context().Done()
			w.count(path, -1)
		}()
		return next.RoundTrip(req)
	})
}

func (w *watches) count(path string, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[path] += by
}

// kinds are those that are watched now.
func (w *watches) kinds() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var kinds []string
	for kind, n := range w.open {
		if n > 0 {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// Shows: work/executor-cost
func TestExecutorsCostNothingAtRest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	seen := &watches{open: map[string]int{}}
	e.settings.spoke.Wrap(seen.wrap)
	a := e.start()
	plain := e.work("plain", e.configMap("plain", nil))
	e.create(plain)
	e.settled(plain)
	assert.Empty(t, seen.kinds(), "without an executor nobody watches RBAC")

	e.role("rbac", rbacRule(), rule("", "configmaps", allVerbs...), rule("", "pods", "get"))
	e.bind("rbac", e.account())
	w := e.executed("w", e.configMap("one", nil), e.podReader("reader"))
	e.create(w)
	e.settled(w)
	e.eventually("what an executor may do is watched", func() bool {
		return slices.Equal([]string{"clusterrolebindings", "clusterroles", "rolebindings", "roles"}, seen.kinds())
	})
	before, _ := e.quiet(a)

	// A repair asks nothing again: the answers are known and nothing was heard that could change them.
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: "one"}}
	require.NoError(t, e.Delete(t.Context(), one))
	e.eventually("the object should come again", func() bool { return e.get(&corev1.ConfigMap{}, e.cluster, "one") })
	e.quiet(a)
	for _, line := range a.spoke.since(before) {
		assert.NotContains(t, line, "subjectaccessreviews")
	}
	seen.mu.Lock()
	for _, line := range seen.poses {
		assert.Contains(t, line, "dryRun=All")
		assert.Contains(t, line, " as system:serviceaccount:"+e.cluster+":executor")
	}
	assert.NotEmpty(t, seen.poses)
	seen.mu.Unlock()

	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("the watches should end", func() bool { return len(seen.kinds()) == 0 })
}
