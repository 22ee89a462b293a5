package work_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// escalation starts the message of a manifest that would hand out more than its executor has.
const escalation = "error: permission escalation, will try again in 1m0s"

// A manifest that a rule finds complete is only read, so its executor is asked about "get" alone. That answer must not
// count when the rule goes and the manifest is to be written.
// Shows: work/executor-same-request
func TestTheAnswerAboutACompleteManifestDoesNotCountForAWrite(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.start()
	e.create(e.configMap("one", map[string]string{"a": "1"}))
	e.role("maps", rule("", "configmaps", "get"))
	e.bind("maps", e.account())
	w := e.executed("w", e.configMap("one", map[string]string{"a": "2"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.rules("", "configmaps", "one", celRule(workv1.ManifestComplete, "true")),
	}
	e.create(w)
	e.is(w, workv1.WorkComplete, yes)
	before, _ := e.quiet(a)
	// A change of RBAC has the executor asked about again, now that the manifest is complete.
	e.role("other", rule("", "endpoints", "get"))
	e.bind("other", e.account())
	e.eventually("the executor should be asked about", func() bool {
		return strings.Contains(strings.Join(a.spoke.since(before), "\n"), "subjectaccessreviews")
	})
	e.quiet(a)

	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil })
	e.applies(w, no)
	assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, "lacks create, update, patch, delete")
	e.quiet(a)
	one := &corev1.ConfigMap{}
	require.True(t, e.get(one, e.cluster, "one"))
	assert.Equal(t, "1", one.Data["a"])
	assert.Empty(t, one.OwnerReferences)
}

// rightsEnv is an environment with an executor that may write all objects of RBAC but hold no other right than to read
// pods, which the ClusterRole harmless hands out.
type rightsEnv struct {
	*env
	harmless string
}

func newRightsEnv(t *testing.T) *rightsEnv {
	t.Helper()
	e := &rightsEnv{env: newEnv(t)}
	e.harmless = e.cluster + "-harmless"
	writer := rule(rbacv1.GroupName, "roles", allVerbs...)
	writer.Resources = append(writer.Resources, "rolebindings", "clusterroles", "clusterrolebindings")
	for name, rules := range map[string][]rbacv1.PolicyRule{
		e.harmless: {rule("", "pods", "get")}, e.cluster + "-writer": {writer},
	} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		e.create(role)
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{e.account()}, RoleRef: roleRef(name),
		}
		e.create(binding)
	}
	return e
}

// roleRef refers to a ClusterRole.
func roleRef(name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
}

// meta is the metadata of the object of a test; its label shows whether a user wrote it.
func (e *rightsEnv) meta(namespace, label string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: e.cluster + "-target", Labels: map[string]string{"by": label}}
}

// somebody are the subjects who are to get rights.
func somebody() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "somebody"}}
}

// root are the subjects who have rights already.
func root() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "root"}}
}

// clusterBinding binds a ClusterRole everywhere.
func (e *rightsEnv) clusterBinding(label, role string, subjects []rbacv1.Subject) client.Object {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: e.meta("", label), RoleRef: roleRef(role), Subjects: subjects,
	}
}

// roleBinding binds a ClusterRole in the namespace of the test.
func (e *rightsEnv) roleBinding(label, role string, subjects []rbacv1.Subject) client.Object {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: e.meta(e.cluster, label), RoleRef: roleRef(role), Subjects: subjects,
	}
}

// namespacedRole is a Role in the namespace of the test.
func (e *rightsEnv) namespacedRole(label string, rules ...rbacv1.PolicyRule) client.Object {
	return &rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
		ObjectMeta: e.meta(e.cluster, label), Rules: rules,
	}
}

// clusterRole is a ClusterRole.
func (e *rightsEnv) clusterRole(label string, rules ...rbacv1.PolicyRule) client.Object {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: e.meta("", label), Rules: rules,
	}
}

// roleWithoutRules is a ClusterRole of labels alone, by which another role takes up the rules that it has.
func (e *rightsEnv) roleWithoutRules(label string) client.Object {
	return e.unstructuredOf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole,
		metadata: {name: %s-target, labels: {by: %s}}}`, e.cluster, label)
}

// forced is the strategy ServerSideApply by force with ignored fields.
func forced(fields ...workv1.IgnoreField) *workv1.UpdateStrategy {
	return &workv1.UpdateStrategy{
		Type:            workv1.UpdateStrategyTypeServerSideApply,
		ServerSideApply: &workv1.ServerSideApplyConfig{Force: true, IgnoreFields: fields},
	}
}

// paths ignores JSON paths of what exists.
func paths(list ...string) workv1.IgnoreField {
	return workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPaths: list}
}

// withStrategy sets how the object of the test is written.
func (e *rightsEnv) withStrategy(w *workv1.ManifestWork, object client.Object, strategy *workv1.UpdateStrategy) {
	e.Helper()
	resource := map[string]string{
		"ClusterRoleBinding": "clusterrolebindings", "RoleBinding": "rolebindings", "Role": "roles", "ClusterRole": "clusterroles",
	}[object.GetObjectKind().GroupVersionKind().Kind]
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{
			Group: rbacv1.GroupName, Resource: resource, Namespace: object.GetNamespace(), Name: object.GetName(),
		},
		UpdateStrategy: strategy,
	}}
}

// content holds what must not change of an object.
func content(o client.Object) any {
	switch o := o.(type) {
	case *rbacv1.ClusterRoleBinding:
		return []any{o.UID, o.OwnerReferences, maps.Clone(o.Labels), o.RoleRef, o.Subjects}
	case *rbacv1.RoleBinding:
		return []any{o.UID, o.OwnerReferences, maps.Clone(o.Labels), o.RoleRef, o.Subjects}
	case *rbacv1.Role:
		return []any{o.UID, o.OwnerReferences, maps.Clone(o.Labels), o.Rules}
	case *rbacv1.ClusterRole:
		return []any{o.UID, o.OwnerReferences, maps.Clone(o.Labels), o.Rules}
	}
	return nil
}

// objects are those of an attack: the one that exists and the one of the manifest.
type objects struct{ existing, wanted client.Object }

// attack is a work by which an executor tries to have more rights handed out than it has.
type attack struct {
	objects  func(*rightsEnv) objects
	strategy *workv1.UpdateStrategy
	message  string
}

// attacks are those on an object that exists.
func attacks() map[string]attack {
	const admin = "cluster-admin"
	all := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	pods := rule("", "pods", "get")
	onChange := workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPaths: []string{".roleRef"}}
	clusterBindings := func(e *rightsEnv) objects {
		return objects{e.clusterBinding("admin", admin, root()), e.clusterBinding("work", e.harmless, somebody())}
	}
	return map[string]attack{
		"the roleRef of a ClusterRoleBinding is ignored by its path": {clusterBindings, forced(paths(".roleRef")), escalation},
		"the roleRef is ignored by a JSON pointer": {clusterBindings, forced(workv1.IgnoreField{
			Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPointers: []string{"/roleRef"},
		}), escalation},
		"the roleRef is ignored by a jq expression": {clusterBindings, forced(workv1.IgnoreField{
			Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JQPathExpressions: []string{".roleRef"},
		}), escalation},
		"the roleRef is ignored once it was applied": {clusterBindings, forced(onChange), roleRefRefused},
		"only the labels of a ClusterRoleBinding are written": {
			clusterBindings, forced(paths(".roleRef", ".subjects")), escalation,
		},
		"a RoleBinding of the same name exists": {func(e *rightsEnv) objects {
			return objects{e.roleBinding("admin", admin, root()), e.roleBinding("work", e.harmless, somebody())}
		}, forced(paths(".roleRef")), escalation},
		"a binding without subjects gets some, without force": {func(e *rightsEnv) objects {
			existing, wanted := e.clusterBinding("admin", admin, nil), e.clusterBinding("work", e.harmless, somebody())
			existing.SetLabels(nil)
			return objects{existing, wanted}
		}, &workv1.UpdateStrategy{
			Type: workv1.UpdateStrategyTypeServerSideApply,
			ServerSideApply: &workv1.ServerSideApplyConfig{
				IgnoreFields: []workv1.IgnoreField{paths(".roleRef")},
			},
		}, escalation},
		"the rules of a Role are ignored": {func(e *rightsEnv) objects {
			return objects{e.namespacedRole("admin", all), e.namespacedRole("work", pods)}
		}, forced(paths(".rules")), escalation},
		"the rules of a ClusterRole are ignored": {func(e *rightsEnv) objects {
			return objects{e.clusterRole("admin", all), e.clusterRole("work", pods)}
		}, forced(paths(".rules")), escalation},
		"a ClusterRole that says no rules is labelled": {func(e *rightsEnv) objects {
			return objects{e.clusterRole("admin", all), e.roleWithoutRules("work")}
		}, forced(), escalation},
		"an update says the rules of a Role": {func(e *rightsEnv) objects {
			return objects{e.namespacedRole("admin", all), e.namespacedRole("work", all)}
		}, nil, escalation},
		"an update says another roleRef": {clusterBindings, nil, roleRefRefused},
		"an update says the roleRef of the object": {func(e *rightsEnv) objects {
			return objects{e.clusterBinding("admin", admin, root()), e.clusterBinding("work", admin, somebody())}
		}, nil, escalation},
		"an object that is only created says the roleRef of the object": {func(e *rightsEnv) objects {
			return objects{e.clusterBinding("admin", admin, root()), e.clusterBinding("work", admin, somebody())}
		}, &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}, escalation},
		"the whole manifest is applied by force": {clusterBindings, forced(), roleRefRefused},
	}
}

// An executor that may write bindings and roles must not have the agent change one that hands out more than it has.
// Shows: work/executor-same-request
func TestAnExecutorCannotHaveRightsOfAnExistingObjectHandedOut(t *testing.T) {
	t.Parallel()
	for name, c := range attacks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRightsEnv(t)
			a := e.start()
			o := c.objects(e)
			existing, wanted := o.existing, o.wanted
			e.create(existing)
			before := content(existing)
			w := e.executed("w", wanted)
			e.withStrategy(w, wanted, c.strategy)
			e.create(w)
			e.applies(w, no)
			assert.Contains(t, manifestCondition(w, 0, workv1.ManifestApplied).Message, c.message)
			e.quiet(a)
			require.True(t, e.get(existing, existing.GetNamespace(), existing.GetName()))
			assert.Equal(t, before, content(existing))
		})
	}
}

// What an executor may do is done, whichever strategy does it, and costs nothing once it is done.
func TestAnExecutorHandsOutWhatItHas(t *testing.T) {
	t.Parallel()
	onChange := workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPaths: []string{".subjects"}}
	for name, strategy := range map[string]*workv1.UpdateStrategy{
		"by updates":                        nil,
		"by creating only":                  {Type: workv1.UpdateStrategyTypeCreateOnly},
		"by applying":                       forced(),
		"by applying with a field ignored":  forced(paths(".subjects")),
		"by applying what was not changed":  forced(onChange),
		"by applying under another manager": {Type: workv1.UpdateStrategyTypeServerSideApply, ServerSideApply: &workv1.ServerSideApplyConfig{FieldManager: "work-agent-x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newRightsEnv(t)
			a := e.start()
			wanted := e.clusterBinding("work", e.harmless, somebody())
			w := e.executed("w", wanted)
			e.withStrategy(w, wanted, strategy)
			e.create(w)
			e.settled(w)
			before, _ := e.quiet(a)
			live := &rbacv1.ClusterRoleBinding{}
			require.True(t, e.get(live, "", wanted.GetName()))
			assert.Equal(t, somebody(), live.Subjects)
			assert.Len(t, live.OwnerReferences, 1)

			// A repair is a write like any other.
			require.NoError(t, e.Delete(t.Context(), live))
			e.eventually("the binding should come again", func() bool { return e.get(live, "", wanted.GetName()) })
			e.settled(w)
			after, _ := e.quiet(a)
			assert.Greater(t, after, before)
			require.True(t, e.get(live, "", wanted.GetName()))
			assert.Equal(t, somebody(), live.Subjects)
			assert.Len(t, live.OwnerReferences, 1)
		})
	}
}
