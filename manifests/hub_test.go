package manifests_test

import (
	"bytes"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
)

// hubObjects decodes YAML files, which may hold several documents each.
func hubObjects(t *testing.T, files [][]byte) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, file := range files {
		for doc := range bytes.SplitSeq(file, []byte("\n---\n")) {
			u := &unstructured.Unstructured{}
			require.NoError(t, yaml.UnmarshalStrict(doc, &u.Object))
			require.NotEmpty(t, u.GetKind())
			all = append(all, u)
		}
	}
	return all
}

func typed[T any](t *testing.T, u *unstructured.Unstructured) T {
	t.Helper()
	var into T
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &into, true))
	return into
}

func TestTheHubShipsItsIdentitiesUnderTheNamesOfTheContract(t *testing.T) {
	var have []string
	for _, u := range hubObjects(t, manifests.Hub()) {
		have = append(have, u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName())
	}
	for _, want := range []string{
		"Namespace /" + names.NamespaceHub, "Namespace /" + names.NamespaceBootstrap,
		"ServiceAccount " + names.NamespaceHub + "/" + names.ServiceAccountManager,
		"ServiceAccount " + names.NamespaceBootstrap + "/" + names.ServiceAccountBootstrap,
		"ClusterRole /open-cluster-management:bootstrap",
		"ClusterRoleBinding /open-cluster-management:bootstrap:agent-registration",
		"ClusterRoleBinding /open-cluster-management:bootstrap:managedcluster",
	} {
		assert.Contains(t, have, want)
	}
}

func TestTheHubManagerHoldsNoMoreThanItMust(t *testing.T) {
	for _, u := range hubObjects(t, manifests.Hub()) {
		if u.GetKind() != "ClusterRole" {
			continue
		}
		for _, rule := range typed[rbacv1.ClusterRole](t, u).Rules {
			for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs} {
				assert.NotContains(t, list, "*", "%s", u.GetName())
			}
			assert.NotContains(t, rule.Resources, "secrets", "users grant the one Secret that is needed")
			assert.NotContains(t, rule.Verbs, "escalate")
			assert.NotContains(t, rule.Verbs, "bind")
			assert.NotContains(t, rule.Verbs, "impersonate")
			assert.NotContains(t, rule.Verbs, "deletecollection")
		}
	}
}

func TestTheRoleForWorksWithoutAnExecutorGivesNothingElse(t *testing.T) {
	var rules []rbacv1.PolicyRule
	for _, u := range hubObjects(t, manifests.Hub()) {
		if u.GetKind() == "ClusterRole" && u.GetName() == "open-cluster-management:cluster-manager-work-executor-admin:webhook" {
			rules = append(rules, typed[rbacv1.ClusterRole](t, u).Rules...)
		}
	}
	assert.Equal(t, []rbacv1.PolicyRule{{
		APIGroups: []string{"work.open-cluster-management.io"}, Resources: []string{"manifestworks"},
		ResourceNames: []string{"system:serviceaccount::" + names.ServiceAccountAgent}, Verbs: []string{"execute-as"},
	}}, rules)
}

func TestTheHubManagerMayChangeExactlyTheDefinitionsThatAreShipped(t *testing.T) {
	var shipped, allowed []string
	for _, u := range hubObjects(t, manifests.CRDs()) {
		shipped = append(shipped, u.GetName())
	}
	for _, u := range hubObjects(t, manifests.Hub()) {
		if u.GetName() != "open-cluster-management:spokelet-hub:crds" || u.GetKind() != "ClusterRole" {
			continue
		}
		for _, rule := range typed[rbacv1.ClusterRole](t, u).Rules {
			allowed = append(allowed, rule.ResourceNames...)
		}
	}
	slices.Sort(shipped)
	slices.Sort(allowed)
	assert.Equal(t, shipped, allowed)
}

func TestTheDeploymentIsHardened(t *testing.T) {
	all := hubObjects(t, manifests.HubDeployment())
	require.Len(t, all, 3)
	pod := typed[appsv1.Deployment](t, all[0]).Spec.Template.Spec
	assert.Equal(t, names.ServiceAccountManager, pod.ServiceAccountName)
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	container := pod.Containers[0]
	assert.False(t, *container.SecurityContext.AllowPrivilegeEscalation)
	assert.True(t, *container.SecurityContext.ReadOnlyRootFilesystem)
	assert.Equal(t, corev1.TerminationMessageFallbackToLogsOnError, container.TerminationMessagePolicy,
		"kubectl describe shows which policy is missing")
	assert.Equal(t, "ALL", string(container.SecurityContext.Capabilities.Drop[0]))
	assert.True(t, *pod.Volumes[0].Secret.Optional, "the hub manager starts without the certificate of its webhook")
	assert.True(t, typed[corev1.Service](t, all[1]).Spec.PublishNotReadyAddresses,
		"the webhook must answer before the hub manager is ready")
}

// TestTheHubManagerReadsOneSecretOfItsOwn holds its Roles, which are of its namespace, to the certificate of its
// webhook.
func TestTheHubManagerReadsOneSecretOfItsOwn(t *testing.T) {
	var rules []rbacv1.PolicyRule
	for _, u := range hubObjects(t, manifests.Hub()) {
		if u.GetKind() != "Role" {
			continue
		}
		for _, rule := range typed[rbacv1.Role](t, u).Rules {
			if slices.Contains(rule.Resources, "secrets") {
				assert.Equal(t, names.NamespaceHub, u.GetNamespace())
				rules = append(rules, rule)
			}
		}
	}
	require.Len(t, rules, 1)
	assert.Equal(t, []string{names.SecretWebhook}, rules[0].ResourceNames)
}

func TestTheKustomizationsListAllFilesOfTheHub(t *testing.T) {
	listed := func(dir string) (files, resources []string) {
		data, err := os.ReadFile(dir + "/kustomization.yaml")
		require.NoError(t, err)
		var kustomization struct {
			Resources []string `json:"resources"`
		}
		require.NoError(t, yaml.Unmarshal(data, &kustomization))
		files, err = fs.Glob(os.DirFS(dir), "*.yaml")
		require.NoError(t, err)
		files = slices.DeleteFunc(files, func(name string) bool { return name == "kustomization.yaml" })
		return files, kustomization.Resources
	}
	policies, resources := listed("hub/policies")
	assert.ElementsMatch(t, policies, resources)
	assert.Len(t, manifests.Policies(), len(policies))
	optional, resources := listed("hub/optional")
	assert.ElementsMatch(t, optional, resources)
	files, resources := listed("hub")
	assert.ElementsMatch(t, append(slices.Clone(files), "policies"), resources, "what is optional is not installed")
	assert.Len(t, files, len(manifests.Hub())-len(policies)+len(manifests.HubDeployment()))
}
