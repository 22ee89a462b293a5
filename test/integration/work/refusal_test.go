package work_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refuseMaps makes the API server refuse ConfigMaps that do not say k: good, and returns what ends that.
func (e *env) refuseMaps() (lift func()) {
	e.Helper()
	return e.refuse("configmaps", "CREATE, UPDATE", "has(object.data) && 'k' in object.data && object.data.k == 'good'",
		"only what is good", func() error {
			return e.Create(e.Context(), e.configMap("probe", map[string]string{"k": "bad"}), client.DryRunAll)
		})
}

// attempts counts the writes to an object of the work, or to its kind where the path does not name it.
func attempts(lines []string, resource string) int {
	n := 0
	for _, line := range writes(lines) {
		if strings.Contains(line, "/"+resource) {
			n++
		}
	}
	return n
}

// TestARefusedManifestIsTriedEverMoreRarely lets the API server refuse a manifest for a day, by the clock of the agent.
//
// Shows: work/bad-manifest-alone
func TestARefusedManifestIsTriedEverMoreRarely(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	e.settings.clock = now
	lift := e.refuseMaps()
	a := e.start()
	w := e.work("w", e.configMap("bad", map[string]string{"k": "bad"}), e.configMap("good", map[string]string{"k": "good"}))
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, "only what is good")
	assert.Equal(t, metav1.ConditionTrue, manifestCondition(w, 1, workv1.ManifestApplied).Status)

	touched := 0
	// after has the agent look at the work so much later, and returns how often it tried to make the object by then.
	after := func(pause time.Duration) int {
		n, _ := e.quiet(a)
		now.SetTime(now.Now().Add(pause))
		touched++
		label := strconv.Itoa(touched)
		e.edit(w, func(w *workv1.ManifestWork) { w.Labels = map[string]string{"touched": label} })
		e.eventually("a pass", func() bool { return e.applied().Labels["touched"] == label })
		e.quiet(a)
		return attempts(a.spoke.since(n), "configmaps")
	}
	assert.Zero(t, after(0), "a pass for another reason does not try it again")
	assert.Equal(t, 1, after(time.Second), "soon at first")
	assert.Zero(t, after(0))
	assert.Equal(t, 1, after(24*time.Hour))
	assert.Zero(t, after(4*time.Minute), "every few minutes after a while")
	assert.Equal(t, 1, after(4*time.Minute))

	n, _ := e.quiet(a)
	e.create(e.configMap("bad", map[string]string{"k": "good"}))
	e.eventually("it is tried when its object changes", func() bool { return attempts(a.spoke.since(n), "configmaps") > 0 })
	e.eventually("the object is seen", func() bool {
		return manifestCondition(e.now(w), 0, workv1.ManifestAvailable).Status == metav1.ConditionTrue
	})
	assert.Equal(t, metav1.ConditionFalse, manifestCondition(w, 0, workv1.ManifestApplied).Status)
	e.edit(w, func(w *workv1.ManifestWork) {
		w.Spec.Workload.Manifests = e.manifests(e.configMap("bad", map[string]string{"k": "good", "more": "1"}))
	})
	e.settled(w)
	lift()
}

// TestAnObjectThatMayNotBeReadIsLeftAlone keeps the agent from reading an object that it may make.
func TestAnObjectThatMayNotBeReadIsLeftAlone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	now := clocktesting.NewFakePassiveClock(time.Now())
	e.settings.clock, e.settings.spoke = now, e.spokeUser(everything, []string{"create", "update", "list", "watch"})
	e.create(e.configMap("a", map[string]string{"k": "theirs"}))
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "v"}))
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	assert.Equal(t, "FetchingResourceFailed", manifestCondition(w, 0, workv1.ManifestAvailable).Reason)
	n, _ := e.quiet(a)
	e.edit(w, func(w *workv1.ManifestWork) { w.Labels = map[string]string{"touched": "1"} })
	e.eventually("a pass", func() bool { return e.applied().Labels["touched"] == "1" })
	e.quiet(a)
	for _, line := range a.spoke.since(n) {
		assert.NotContains(t, line, "/configmaps")
	}
	e.setData("a", map[string]string{"k": "others"})
	e.eventually("it is tried when its object changes", func() bool {
		return strings.Contains(strings.Join(a.spoke.since(n), "\n"), "/configmaps")
	})
	assert.Equal(t, metav1.ConditionUnknown, manifestCondition(e.now(w), 0, workv1.ManifestAvailable).Status)
}

// TestAManifestThatFailsDoesNotDelayItsSiblings has a work whose back-off is a minute, because one manifest fails at
// every attempt, and an object that changes its status twice in a moment.
//
// Shows: work/bad-manifest-alone
func TestAManifestThatFailsDoesNotDelayItsSiblings(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.fault = func(req *http.Request) bool {
		return req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/configmaps/broken")
	}
	e.create(e.configMap("broken", map[string]string{"k": "theirs"}))
	e.start()
	w := e.work("w", e.configMap("broken", map[string]string{"k": "v"}), e.ingress("fine"))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.feedback("networking.k8s.io", "ingresses", "fine", jsonPaths("ip", ".status.loadBalancer.ingress[0].ip")),
	}
	e.create(w)
	e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	const failures = 14 // each doubles the back-off
	for i := range failures {
		label := strconv.Itoa(i)
		e.edit(w, func(w *workv1.ManifestWork) { w.Labels = map[string]string{"touched": label} })
		e.eventually("a pass", func() bool { return e.applied().Labels["touched"] == label })
	}
	const changes = 5
	for i := range changes {
		ip := "10.0.0." + strconv.Itoa(i)
		var fine networkingv1.Ingress
		require.True(t, e.get(&fine, e.cluster, "fine"))
		fine.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: ip}}
		require.NoError(t, e.Status().Update(t.Context(), &fine))
		e.reports(w, 1, "ip="+strconv.Quote(ip))
	}
	assert.Equal(t, metav1.ConditionFalse, manifestCondition(w, 0, workv1.ManifestApplied).Status)
	require.True(t, e.get(&corev1.ConfigMap{}, e.cluster, "broken"))
}

// everything holds what the agent may do with AppliedManifestWorks.
var everything = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// spokeUser is an agent on the spoke with verbs for AppliedManifestWorks and for ConfigMaps, and for nothing else.
func (e *env) spokeUser(applied, maps []string) *rest.Config {
	e.Helper()
	name := "agent-" + e.cluster
	user, err := plane.User(name)
	require.NoError(e, err)
	user.QPS = -1
	e.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"work.open-cluster-management.io"},
			Resources: []string{"appliedmanifestworks", "appliedmanifestworks/status"}, Verbs: applied,
		},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: maps},
	}})
	e.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	})
	return user
}

func TestAnAppliedManifestWorkThatMayNotBeMadeIsTold(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.settings.events = true
	e.settings.spoke = e.spokeUser([]string{"get", "list", "watch", "update", "patch", "delete"}, []string{"*"})
	e.start()
	w := e.work("w", e.configMap("a", nil))
	e.create(w)
	applied := e.is(w, workv1.WorkApplied, metav1.ConditionFalse)
	assert.Equal(t, "AppliedManifestWorkFailed", applied.Reason)
	assert.Contains(t, applied.Message, "Failed to apply manifest work: the AppliedManifestWork, which lists its objects")
	assert.Contains(t, applied.Message, `cannot create resource "appliedmanifestworks"`)
	assert.Contains(t, applied.Message, "; grant the agent get, list, watch, create, update, patch and delete of")
	assert.Contains(t, e.told(w, "ApplyFailed").Note, "the AppliedManifestWork, which lists its objects")
	assert.Empty(t, e.mapUID("a"), "what cannot be listed is not made")

	var role rbacv1.ClusterRole
	require.True(t, e.get(&role, "", "agent-"+e.cluster))
	role.Rules[0].Verbs = everything
	require.NoError(t, e.Update(t.Context(), &role))
	e.settled(w)
	e.told(w, "ApplyRecovered")
}

func TestANameThatIsTooLongIsTold(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	const longest = 188
	fits := e.work(strings.Repeat("f", longest), e.configMap("a", nil))
	e.create(fits)
	e.settled(fits)
	w := e.work(strings.Repeat("w", longest+1), e.configMap("b", nil))
	e.create(w)
	assert.Equal(t, "Failed to apply manifest work: the name of a ManifestWork may have 188 characters at most and this one "+
		"has 189; create the work under a shorter name", e.is(w, workv1.WorkApplied, metav1.ConditionFalse).Message)
	e.quiet(a)
	assert.Empty(t, e.mapUID("b"))
	require.NoError(t, e.Delete(t.Context(), w))
	e.eventually("it goes like any other", func() bool { return !e.get(&workv1.ManifestWork{}, e.cluster, w.Name) })
}
