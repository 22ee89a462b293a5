package deploy

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// tokenFacts are those of an add-on whose agent takes tokens, with a role in its cluster's namespace and one elsewhere.
func tokenFacts() (facts, *rbacv1.Subject) {
	f := factsOf()
	f.accountOurs = true
	f.setup.Permissions = []addon.Permission{permission("c1", "ClusterRole", "admin"), permission("shared", "Role", "reader")}
	f.setup.Permissions[1].Subjects[0].Name = csr.AddonGroups("c1", "a")[1]
	by := addonv1beta1.RegistrationConfig{
		Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{Driver: "token"},
	}
	// Whatever subject stands there has no part in it.
	by.KubeClient.Subject.User = "system:serviceaccount:kube-system:forged"
	return f, account(f, []addonv1beta1.RegistrationConfig{by})
}

func TestAServiceAccountIsBoundBesideTheGroups(t *testing.T) {
	f, of := tokenFacts()
	require.Equal(t, &rbacv1.Subject{Kind: "ServiceAccount", Namespace: "c1", Name: "a-agent"}, of)
	steps := planBindings(f, of)
	require.Len(t, steps, 2)
	here, own := steps[0].After, steps[1].After
	assert.Len(t, here.Subjects, 2)
	assert.Equal(t, *of, here.Subjects[1])
	group := rbacv1.Subject{
		APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:open-cluster-management:cluster:c1:addon:a",
	}
	assert.Equal(t, []rbacv1.Subject{group, *of}, own.Subjects, "the group of all clusters gets nothing")
	assert.Equal(t, "shared", own.Namespace)
	assert.Equal(t, "open-cluster-management:a:role:agent:cluster:c1", own.Name)
	assert.Equal(t, map[string]string{
		names.LabelAddonName: "a", names.LabelAddonTemplate: "", names.LabelClusterName: "c1",
	}, own.Labels)

	for _, s := range steps {
		f.bindings = append(f.bindings, s.After)
	}
	assert.Empty(t, planBindings(f, of), "what is there is kept")

	// Without tokens, the ServiceAccount goes; the binding of another cluster is not touched.
	other := own.DeepCopy()
	other.Name, other.Labels[names.LabelClusterName] = "open-cluster-management:a:role:agent:cluster:c2", "c2"
	f.bindings = append(f.bindings, other)
	steps = planBindings(f, nil)
	require.Len(t, steps, 2)
	for _, s := range steps {
		assert.Equal(t, reconcile.Patch, s.Verb)
		assert.NotContains(t, s.After.Subjects, *of)
	}
}

func TestAServiceAccountOfOthersIsNotBound(t *testing.T) {
	f, of := tokenFacts()
	by := []addonv1beta1.RegistrationConfig{{
		Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{Driver: "token"},
	}}
	by[0].KubeClient.Subject.User = "system:serviceaccount:c1:a-agent"
	f.accountOurs = false
	assert.Nil(t, account(f, by))
	assert.Equal(t, "registration subject not ready", pendingPermissions(f, by))
	for _, s := range planBindings(f, of) {
		f.bindings = append(f.bindings, s.After)
	}
	assert.Empty(t, pendingPermissions(f, by), "what it has from before is taken back")
	for _, s := range planBindings(f, account(f, by)) {
		assert.NotContains(t, s.After.Subjects, *of)
	}
}

// The definition asks for more than the agent gets. It is deployed, keeps the roles that it has, and says why it gets no
// others.
//
// Shows: hub/template-of-another
func TestAnAgentThatIsDeniedAPartIsDeployedWithWhatItHas(t *testing.T) {
	f, _ := tokenFacts()
	for _, s := range planBindings(f, nil) {
		f.bindings = append(f.bindings, s.After)
	}
	f.accountOurs, f.setup.Permissions = false, nil
	f.withheld = &addon.InvalidError{Message: "AddOnTemplate t is for another add-on"}
	f.former = []*rbacv1.RoleBinding{roleBinding("elsewhere", "", "a")}
	p := decide(f)
	require.NoError(t, p.worksErr)
	require.Len(t, p.bindings, 1, "the agent of this cluster keeps what those of all clusters have")
	assert.Equal(t, "elsewhere", p.bindings[0].After.Namespace)
	assert.Equal(t, reconcile.Create, p.bindings[0].Verb)
	condition, known := registrationApplied(f, p, results{bindings: make([]error, 1)})
	require.True(t, known)
	assert.Equal(t, metav1.ConditionFalse, condition.Status)
	assert.Equal(t, "SetPermissionFailed", condition.Reason)
	assert.Equal(t, "AddOnTemplate t is for another add-on.", condition.Message)
	assert.Equal(t, reconcile.ClassStalled, outcomeOf(f, p, results{}, nil).Class())
}

func TestAnAgentKeepsWhatItHasWhileItIsUnknownWhatItAsksFor(t *testing.T) {
	f, _ := tokenFacts()
	f.setupErr, f.registrationsErr = errors.New("no template"), errors.New("no template")
	everyone := permission("shared", "Role", "reader")
	everyone.Subjects[0].Name = csr.AddonGroups("c1", "a")[1]
	for _, namespace := range []string{"shared", "c1"} {
		former := roleBinding(namespace, "", "a")
		former.Subjects = everyone.Subjects
		f.former = append(f.former, former)
	}
	steps := decide(f).bindings
	require.Len(t, steps, 1, "in the namespace of the cluster nobody but its agent had anything")
	assert.Equal(t, reconcile.Create, steps[0].Verb)
	assert.Equal(t, "shared", steps[0].After.Namespace)
	assert.Equal(t, "system:open-cluster-management:cluster:c1:addon:a", steps[0].After.Subjects[0].Name)
	f.bindings = append(f.bindings, steps[0].After)
	assert.Empty(t, decide(f).bindings)
}

// Shows: policies/depends-removal-rights
func TestWhoMayHaveRoles(t *testing.T) {
	for sentence, tc := range map[string]struct {
		edit func(f *facts)
		want bool
	}{
		"the agent of an accepted cluster":      {func(*facts) {}, true},
		"not that of a denied one":              {func(f *facts) { f.cluster.Spec.HubAcceptsClient = false }, false},
		"nor of one that is gone":               {func(f *facts) { f.cluster = nil }, false},
		"nor of an add-on that is gone":         {func(f *facts) { f.addOn = nil }, false},
		"nor of one that is being deleted":      {func(f *facts) { f.addOn.DeletionTimestamp = &metav1.Time{} }, false},
		"unless a hook runs, which may need it": {func(f *facts) { leaving(f) }, true},
		"or others go before it, which may":     {func(f *facts) { before(f); f.needed = true }, true},
		"but not where their works alone stay":  {before, false},
		"but not on a denied cluster":           {func(f *facts) { leaving(f); f.cluster.Spec.HubAcceptsClient = false }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := factsOf()
			f.cluster.Spec.HubAcceptsClient = true
			tc.edit(&f)
			assert.Equal(t, tc.want, mayHaveRoles(f))
		})
	}
}

func leaving(f *facts) {
	f.addOn.DeletionTimestamp, f.addOn.Finalizers = &metav1.Time{}, []string{finalizerHook}
}

func before(f *facts) {
	f.addOn.DeletionTimestamp, f.addOn.Finalizers = &metav1.Time{}, []string{names.FinalizerDependents}
}

func TestTheLastOfAllPassesIsNoticed(t *testing.T) {
	key := func(cluster string) types.NamespacedName { return types.NamespacedName{Namespace: cluster, Name: "a"} }
	all := map[string]types.UID{"c1": "u", "c2": "u", "c3": "u"}
	var p passed
	require.True(t, p.note(key("c1"), "u", false), "nobody counted yet")
	assert.False(t, p.complete("a", all))
	assert.False(t, p.note(key("c1"), "u", false), "a second pass is no other cluster")
	assert.False(t, p.note(key("c2"), "u", false))
	assert.True(t, p.note(key("c3"), "u", false))
	assert.True(t, p.complete("a", all))
	assert.True(t, p.complete("a", all), "the deletion may have failed")
	p.forget("a")
	assert.False(t, p.complete("a", all), "it is forgotten")
}

func TestSeveralRolesOfOneKindHaveBindingsOfTheirOwn(t *testing.T) {
	f, of := tokenFacts()
	f.setup.Permissions = []addon.Permission{permission("shared", "Role", "reader"), permission("shared", "Role", "writer")}
	steps := planBindings(f, of)
	seen := map[string]bool{}
	for _, s := range steps {
		assert.Equal(t, reconcile.Create, s.Verb)
		seen[s.After.Name] = true
		f.bindings = append(f.bindings, s.After)
	}
	assert.Len(t, seen, 2)
	assert.Empty(t, planBindings(f, of))
	f.setup.Permissions = nil
	for _, s := range planBindings(f, of) {
		assert.Equal(t, reconcile.Delete, s.Verb)
		assert.Equal(t, "c1", s.Before.Labels[names.LabelClusterName])
	}
}

func TestPermissionsWaitUntilTheAgentIsItsServiceAccount(t *testing.T) {
	kube := func(driver, user string) []addonv1beta1.RegistrationConfig {
		r := addonv1beta1.RegistrationConfig{
			Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{Driver: driver},
		}
		r.KubeClient.Subject.User = user
		return []addonv1beta1.RegistrationConfig{r}
	}
	f, _ := tokenFacts()
	assert.Equal(t, "registration subject not ready", pendingPermissions(f, kube("token", "")))
	assert.Empty(t, pendingPermissions(f, kube("token", "system:serviceaccount:c1:a-agent")))
	assert.Empty(t, pendingPermissions(f, kube("", "")), "without tokens the subject is the hub's own")
	assert.Nil(t, account(f, kube("csr", "u")))
	f.setup.Permissions = nil
	assert.Empty(t, pendingPermissions(f, kube("token", "")), "without permissions nothing waits")
}

func TestABindingElsewhereIsOfOneClusterByItsLabels(t *testing.T) {
	f := factsOf()
	binding := func(namespace string, labels map[string]string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b", Labels: labels}}
	}
	own := map[string]string{names.LabelAddonName: "a", names.LabelAddonTemplate: "", names.LabelClusterName: "c1"}
	assert.True(t, ofCluster(binding("shared", own), f))
	for label := range own {
		less := map[string]string{}
		for key, value := range own {
			if key != label {
				less[key] = value
			}
		}
		assert.False(t, ofCluster(binding("shared", less), f), "without %s", label)
	}
	assert.False(t, ofCluster(binding("c1", own), f), "in the cluster's namespace the owner decides")
}

func TestPermissionsThatYieldOneBindingAreMerged(t *testing.T) {
	user := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.UserKind, Name: name} }
	stored := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
	}
	one := addon.Permission{
		Namespace: "c1", RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, Subjects: []rbacv1.Subject{user("u")},
	}
	two := addon.Permission{
		Namespace: "c1", RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "r"},
		Subjects: []rbacv1.Subject{stored("v"), stored("u"), {Kind: "ServiceAccount", Namespace: "n", Name: "s"}},
	}
	f := factsOf()
	f.setup.Permissions = []addon.Permission{one, two}
	steps := planBindings(f, nil)
	require.Len(t, steps, 1)
	assert.Equal(t, rbacv1.GroupName, steps[0].After.RoleRef.APIGroup)
	assert.Equal(t, []rbacv1.Subject{stored("u"), stored("v"), {Kind: "ServiceAccount", Namespace: "n", Name: "s"}},
		steps[0].After.Subjects, "what the API server would default is no difference for ever")
	f.bindings = []*rbacv1.RoleBinding{steps[0].After}
	assert.Empty(t, planBindings(f, nil))
	assert.Equal(t, []rbacv1.Subject{user("u")}, one.Subjects, "what the agent returned is not changed")
}

func TestARoleKeepsTheNameThatItHas(t *testing.T) {
	const base = "open-cluster-management:a:role:agent"
	role := func(namespace, name string) addon.Permission { return permission(namespace, "Role", name) }
	for sentence, tc := range map[string]struct {
		before, after []addon.Permission
		want          []string
	}{
		"in another order": {
			[]addon.Permission{role("c1", "one"), role("c1", "two")}, []addon.Permission{role("c1", "two"), role("c1", "one")}, nil,
		},
		"in another order in a shared namespace": {
			[]addon.Permission{role("s", "one"), role("s", "two")}, []addon.Permission{role("s", "two"), role("s", "one")}, nil,
		},
		"when another one comes before it": {
			[]addon.Permission{role("c1", "one")}, []addon.Permission{role("c1", "new"), role("c1", "one")},
			[]string{"create c1/" + base + ":25dd7317"},
		},
		"when that with the plain name goes": {
			[]addon.Permission{role("c1", "one"), role("c1", "two")}, []addon.Permission{role("c1", "two")},
			[]string{"delete c1/" + base},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := factsOf()
			f.setup.Permissions = tc.before
			for _, s := range planBindings(f, nil) {
				f.bindings = append(f.bindings, s.After)
			}
			f.setup.Permissions = tc.after
			var got []string
			for _, s := range planBindings(f, nil) {
				got = append(got, string(s.Verb)+" "+s.Object().Namespace+"/"+s.Object().Name)
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// TestABindingForAllClustersBecomesThatOfOne: its namespace is that of a cluster that joined later.
func TestABindingForAllClustersBecomesThatOfOne(t *testing.T) {
	f := factsOf()
	f.addOn.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterManagementAddOn", Name: "a", UID: "cma"}}
	everywhere := permission("c1", "Role", "r")
	everywhere.Subjects[0].Name = "agents of all clusters"
	there := desiredBinding(f, namingOf(f, nil).keyOf(grant{Permission: everywhere}), grant{Permission: everywhere})
	there.OwnerReferences = f.addOn.OwnerReferences
	f.bindings = []*rbacv1.RoleBinding{there}
	f.setup.Permissions = []addon.Permission{permission("c1", "Role", "r")}
	steps := planBindings(f, nil)
	require.Len(t, steps, 1)
	assert.Equal(t, reconcile.Patch, steps[0].Verb)
	assert.Equal(t, f.setup.Permissions[0].Subjects, steps[0].After.Subjects)
	require.Len(t, steps[0].After.OwnerReferences, 1, "it goes with the add-on on this cluster")
	assert.Equal(t, "ManagedClusterAddOn", steps[0].After.OwnerReferences[0].Kind)
}

func TestWhatIsRefusedKeepsWhatIsThereAndDropsWhatNoAddOnMayHave(t *testing.T) {
	f, _ := tokenFacts()
	f.refused = &addon.InvalidError{Message: "namespace c2 is that of a cluster"}
	f.obsolete = []*rbacv1.RoleBinding{{ObjectMeta: metav1.ObjectMeta{Namespace: "c2", Name: "b"}}}
	p := decide(f)
	require.Len(t, p.bindings, 1)
	assert.Equal(t, reconcile.Delete, p.bindings[0].Verb)
	after := conclude(f, p, results{bindings: []error{nil}})
	condition := meta.FindStatusCondition(after.Status.Conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied)
	require.NotNil(t, condition)
	assert.Equal(t, addonv1beta1.RegistrationAppliedSetPermissionFailed, condition.Reason)
	assert.Equal(t, "namespace c2 is that of a cluster.", condition.Message)
	assert.NotEmpty(t, after.Status.Namespace, "the namespace does not depend on the permissions")
	assert.Equal(t, reconcile.ClassStalled, outcomeOf(f, p, results{bindings: []error{nil}}, nil).Class())
}

// A tenant's binding with a finalizer and a label that changes cost a request for each cluster and change.
func TestABindingThatIsBeingDeletedIsNotDeletedAgain(t *testing.T) {
	now := metav1.Now()
	going := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "going", DeletionTimestamp: &now}}
	there := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "there"}}
	assert.Equal(t, []bindingStep{{Verb: reconcile.Delete, Before: there}},
		dropBindings([]*rbacv1.RoleBinding{going, there}))
}
