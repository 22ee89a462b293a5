package deploy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/test/suite"
)

func group(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: name}}
}

// Shows: registration/registration-published, hub/deployed
func TestATemplateIsDeployed(t *testing.T) {
	t.Parallel()
	f := install(t, "whole")
	work := f.work(t, nil)
	assert.Equal(t, map[string]string{"open-cluster-management.io/addon-name": "whole"}, work.Labels)
	require.Len(t, work.Spec.Workload.Manifests, 2)
	assert.Equal(t, "--cluster=whole-cluster", argument(t, work, 0))
	assert.Equal(t, "--v=2", argument(t, work, 1))
	assert.Equal(t, []workv1.OrphaningRule{{
		Resource: "serviceaccounts", Namespace: "open-cluster-management-agent-addon", Name: "agent",
	}}, work.Spec.DeleteOption.SelectivelyOrphan.OrphaningRules)

	f.condition(t, "RegistrationApplied", metav1.ConditionTrue, "SetPermissionApplied")
	here := binding(t.Context(), f.cluster, "open-cluster-management:whole:clusterrole:agent")
	require.NotNil(t, here)
	assert.Equal(t, group("system:open-cluster-management:cluster:whole-cluster:addon:whole"), here.Subjects)
	assert.Equal(t, "whole-admin", here.RoleRef.Name)
	shared := binding(t.Context(), "whole-shared", "open-cluster-management:whole:role:agent:cluster:whole-cluster")
	require.NotNil(t, shared)
	assert.Equal(t, group("system:open-cluster-management:cluster:whole-cluster:addon:whole"), shared.Subjects)

	f.condition(t, "Available", metav1.ConditionUnknown, "WorkNotApplied")
	f.report(t, 0)
	f.condition(t, "ManifestApplied", metav1.ConditionTrue, "AddonManifestApplied")
	f.condition(t, "Available", metav1.ConditionFalse, "ProbeUnavailable")
	f.report(t, 1)
	f.condition(t, "Available", metav1.ConditionTrue, "ProbeAvailable")

	f.atRest(t)
	addOn := f.get(t.Context())
	assert.Equal(t, []addonv1beta1.ConfigGroupResource{confighash.DeploymentConfig(), confighash.Template()},
		addOn.Status.SupportedConfigs)
	assert.Equal(t, "open-cluster-management-agent-addon", addOn.Status.Namespace)
	assert.Equal(t, addonv1beta1.HealthCheckModeCustomized, addOn.Status.HealthCheck.Mode)
	require.Len(t, addOn.Status.Registrations, 1)
	assert.Equal(t, "system:open-cluster-management:cluster:whole-cluster:addon:whole:agent:whole-agent",
		addOn.Status.Registrations[0].KubeClient.Subject.User)
	var hashes map[string]string
	require.NoError(t, json.Unmarshal([]byte(work.Annotations["open-cluster-management.io/config-spec-hash"]), &hashes))
	assert.Equal(t, confighash.Map(addOn.Status.ConfigReferences), hashes)
	assert.Len(t, hashes, 2)

	writes := f.writes(t)
	require.NotEmpty(t, writes)
	t.Logf("writes for one cluster, with two reports of its agent: %s", strings.Join(writes, "; "))
	f.annotate(t, "touched", "yes")
	f.atRest(t)
	assert.Equal(t, writes, f.writes(t), "a pass that finds everything in order writes nothing")
}

// Shows: registration/registration-follows
func TestAChangedConfigurationReachesTheWork(t *testing.T) {
	t.Parallel()
	f := install(t, "changed")
	before := f.work(t, nil)
	f.apply(t, `value: "2"`, `value: "quoted \" and\nbroken"`)
	after := f.work(t, func(w *workv1.ManifestWork) bool { return w.Generation > before.Generation })
	assert.Equal(t, "--v=quoted \" and\nbroken", argument(t, after, 1), "a value never leaves its string")
	assert.NotEqual(t, before.Annotations, after.Annotations)
	f.atRest(t)
	assert.Equal(t, after.Generation, f.work(t, nil).Generation, "one change is one write")
}

// Shows: hub/broken-template
func TestABrokenTemplateChangesNothingAndSaysWhy(t *testing.T) {
	t.Parallel()
	f := install(t, "broken")
	f.work(t, nil)
	f.report(t, 1)
	f.condition(t, "Available", metav1.ConditionTrue, "ProbeAvailable")
	before := f.work(t, nil)

	f.apply(t, "{{LOG_LEVEL}}", "{{LOGLEVEL}}{{ALSO}}")
	message := f.condition(t, "ManifestApplied", metav1.ConditionFalse, "ManifestWorkApplyFailed").Message
	assert.Contains(t, message, "AddOnTemplate broken cannot be rendered: manifest 0 (Deployment "+
		"open-cluster-management-agent-addon/agent), .spec.template.spec.containers[0].args[1]: variable LOGLEVEL has no value")
	assert.Contains(t, message, "variable ALSO has no value")
	assert.Contains(t, message, "spec.customizedVariables of AddOnDeploymentConfig broken-shared/config")
	f.atRest(t)
	assert.Equal(t, before.ResourceVersion, f.work(t, nil).ResourceVersion, "the last good work stays")
	f.condition(t, "Available", metav1.ConditionTrue, "ProbeAvailable")

	f.apply(t, "--v={{LOG_LEVEL}}", "--verbosity={{LOG_LEVEL}}")
	work := f.work(t, func(w *workv1.ManifestWork) bool { return w.Generation > before.Generation })
	assert.Equal(t, "--verbosity=2", argument(t, work, 1))
	f.report(t, 1)
	f.condition(t, "ManifestApplied", metav1.ConditionTrue, "AddonManifestApplied")
}

// Shows: hub/missing-grant
func TestAMissingGrantIsToldWithTheWayToGiveIt(t *testing.T) {
	t.Parallel()
	f := install(t, "ungranted", "resources: [configmaps], verbs: [get, list]", "resources: [secrets], verbs: [get]",
		`hub-permission: "true"`, `hub-permission: "false"`)
	message := f.says(t, "RegistrationApplied", metav1.ConditionFalse, "SetPermissionFailed",
		"ClusterRole ungranted-admin cannot be bound for the agent in namespace ungranted-cluster: "+
			"ServiceAccount open-cluster-management-hub/addon-manager-controller-sa may not grant rights that it does not have.",
		"kubectl create clusterrolebinding addon-manager-ungranted-admin "+
			"--clusterrole=ungranted-admin --serviceaccount=open-cluster-management-hub:addon-manager-controller-sa",
		"secrets") // the API server says which rights are missing
	assert.NotContains(t, message, "ungranted-reader", "the other permission is set")
	assert.NotNil(t, binding(t.Context(), "ungranted-shared",
		"open-cluster-management:ungranted:role:agent:cluster:ungranted-cluster"))
	f.work(t, nil)
	assert.Len(t, f.get(t.Context()).Status.Registrations, 1, "the agent is deployed and may register meanwhile")

	require.NoError(t, plane.Client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "addon-manager-ungranted-admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "ungranted-admin"},
		Subjects: []rbacv1.Subject{{
			Kind: "ServiceAccount", Namespace: "open-cluster-management-hub", Name: "addon-manager-controller-sa",
		}},
	}))
	// It is tried again after half a minute to a minute; a change of the add-on does not wait for that. The API server
	// needs a moment to know of the grant, so the add-on is touched until it is through.
	touched := 0
	suite.Eventually(t, suite.True("the permissions must be set once they can be", func() bool {
		touched++
		f.annotate(t, "touched", string(rune('a'+touched%26)))
		return binding(t.Context(), f.cluster, "open-cluster-management:ungranted:clusterrole:agent") != nil
	}))
	f.condition(t, "RegistrationApplied", metav1.ConditionTrue, "SetPermissionApplied")
}

func (f fixture) annotate(t *testing.T, key, value string) {
	t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"` + key + `":"` + value + `"}}}`)
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: f.addOn}}
	require.NoError(t, plane.Client.Patch(t.Context(), addOn, client.RawPatch("application/merge-patch+json", patch)))
}

func TestDriftIsRepaired(t *testing.T) {
	t.Parallel()
	f := install(t, "drift")
	f.condition(t, "RegistrationApplied", metav1.ConditionTrue, "SetPermissionApplied")
	work := f.work(t, nil)

	changed := work.DeepCopy()
	changed.Labels["team"] = "x"
	delete(changed.Annotations, "open-cluster-management.io/config-spec-hash")
	changed.Spec.Workload.Manifests = changed.Spec.Workload.Manifests[1:]
	require.NoError(t, plane.Client.Update(t.Context(), changed))
	repaired := f.work(t, func(w *workv1.ManifestWork) bool { return len(w.Spec.Workload.Manifests) == 2 })
	assert.Equal(t, work.Spec, repaired.Spec)
	assert.Equal(t, work.Annotations, repaired.Annotations)
	assert.Equal(t, "x", repaired.Labels["team"], "labels of others stay")

	require.NoError(t, plane.Client.Delete(t.Context(), repaired))
	again := f.work(t, func(w *workv1.ManifestWork) bool { return w.UID != repaired.UID })
	assert.Equal(t, work.Spec, again.Spec)

	for _, key := range []client.ObjectKey{
		{Namespace: f.cluster, Name: "open-cluster-management:drift:clusterrole:agent"},
		{Namespace: "drift-shared", Name: "open-cluster-management:drift:role:agent:cluster:drift-cluster"},
	} {
		before := binding(t.Context(), key.Namespace, key.Name)
		require.NotNil(t, before)
		intruded := before.DeepCopy()
		intruded.Subjects = append(intruded.Subjects, rbacv1.Subject{
			APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "system:unauthenticated",
		})
		require.NoError(t, plane.Client.Update(t.Context(), intruded))
		suite.Eventually(t, suite.True("the binding must have a subject", func() bool {
			b := binding(t.Context(), key.Namespace, key.Name)
			return b != nil && len(b.Subjects) == 1
		}))
		require.NoError(t, plane.Client.Delete(t.Context(), before))
		suite.Eventually(t, suite.True("the binding must come again", func() bool {
			b := binding(t.Context(), key.Namespace, key.Name)
			return b != nil && b.UID != before.UID
		}))
	}
}

func TestWhatAnAgentWritesGivesItNothing(t *testing.T) {
	t.Parallel()
	f := install(t, "forged")
	f.condition(t, "RegistrationApplied", metav1.ConditionTrue, "SetPermissionApplied")
	other := install(t, "victim")
	other.condition(t, "RegistrationApplied", metav1.ConditionTrue, "SetPermissionApplied")
	f.atRest(t)
	before := f.get(t.Context())

	var wire addonv1alpha1.ManagedClusterAddOn
	// The hub writes this status too, so a forger tries until it is first.
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := plane.Client.Get(t.Context(), client.ObjectKey{Namespace: f.cluster, Name: f.addOn}, &wire); err != nil {
			return err
		}
		wire.Status.Registrations[0].Subject = addonv1alpha1.Subject{User: "system:admin", Groups: []string{"system:masters"}}
		for i := range wire.Status.ConfigReferences {
			if reference := &wire.Status.ConfigReferences[i]; reference.Resource == "addontemplates" {
				reference.Name, reference.DesiredConfig.Name = "victim", "victim"
			}
		}
		return plane.Client.Status().Update(t.Context(), &wire)
	}))
	suite.Eventually(t, suite.True("the registration must be as before", func() bool {
		addOn := f.get(t.Context())
		return addOn != nil && addOn.Status.Registrations[0].KubeClient.Subject.User ==
			before.Status.Registrations[0].KubeClient.Subject.User
	}))
	f.atRest(t)
	assert.Equal(t, before.Status.ConfigReferences, f.get(t.Context()).Status.ConfigReferences)
	var bindings rbacv1.RoleBindingList
	require.NoError(t, plane.Client.List(t.Context(), &bindings, client.MatchingLabels{"open-cluster-management.io/addon-name": "forged"}))
	assert.Len(t, bindings.Items, 2)
	for i := range bindings.Items {
		assert.Contains(t, []string{"forged-admin", "forged-reader"}, bindings.Items[i].RoleRef.Name)
		require.Len(t, bindings.Items[i].Subjects, 1)
		assert.Contains(t, bindings.Items[i].Subjects[0].Name, ":addon:forged")
	}
}

// Shows: hub/deletion-leaves-nothing
func TestDeletionLeavesNothing(t *testing.T) {
	t.Parallel()
	f := install(t, "leaving")
	f.condition(t, "RegistrationApplied", metav1.ConditionTrue, "SetPermissionApplied")
	work := f.work(t, nil)
	here := binding(t.Context(), f.cluster, "open-cluster-management:leaving:clusterrole:agent")
	shared := binding(t.Context(), "leaving-shared", "open-cluster-management:leaving:role:agent:cluster:leaving-cluster")
	require.NotNil(t, here)
	require.NotNil(t, shared)

	require.NoError(t, plane.AddOns.DeleteAddOn(t.Context(), f.get(t.Context())))
	suite.Within(t, collection, suite.True("the objects of the cluster must be collected", func() bool {
		return gone(t.Context(), work) && gone(t.Context(), here) && gone(t.Context(), shared)
	}))

	f.enable(t)
	again := f.work(t, nil)
	require.NoError(t, plane.Client.Delete(t.Context(), &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: f.addOn},
	}))
	suite.Within(t, collection, suite.True("the add-on must go with its objects", func() bool {
		return f.get(t.Context()) == nil && gone(t.Context(), again) &&
			binding(t.Context(), shared.Namespace, shared.Name) == nil
	}))
}

// Shows: hub/missing-template
func TestAMissingTemplateIsTold(t *testing.T) {
	t.Parallel()
	f := install(t, "absent", "defaultConfig: {name: absent}", "defaultConfig: {name: nowhere}")
	suite.Eventually(t, suite.True("no condition names the template that is missing", func() bool {
		addOn := f.get(t.Context())
		if addOn == nil {
			return false
		}
		for _, condition := range addOn.Status.Conditions {
			if condition.Status == metav1.ConditionFalse && strings.Contains(condition.Message, "nowhere") {
				return true
			}
		}
		return false
	}))
}
