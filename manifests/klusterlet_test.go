package manifests

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/names"
)

// split returns the objects of YAML files, decoded strictly enough to have a kind and a name.
func split(t *testing.T, files ...[]byte) []map[string]any {
	t.Helper()
	var objects []map[string]any
	for _, file := range files {
		for _, doc := range bytes.Split(file, []byte("\n---\n")) {
			var object map[string]any
			require.NoError(t, yaml.Unmarshal(doc, &object))
			meta, ok := object["metadata"].(map[string]any)
			require.True(t, ok, "%s", doc)
			require.NotEmpty(t, meta["name"])
			require.NotEmpty(t, object["kind"])
			objects = append(objects, object)
		}
	}
	return objects
}

func into[T any](t *testing.T, object map[string]any) T {
	t.Helper()
	raw, err := yaml.Marshal(object)
	require.NoError(t, err)
	var typed T
	require.NoError(t, yaml.UnmarshalStrict(raw, &typed))
	return typed
}

func TestKlusterletGrantsTheAgentAndNobodyElse(t *testing.T) {
	roles := map[string]bool{}
	objects := split(t, Klusterlet()...)
	for _, object := range objects {
		require.NotEqual(t, "Deployment", object["kind"])
		switch object["kind"] {
		case "ClusterRole":
			role := into[rbacv1.ClusterRole](t, object)
			roles[role.Name] = true
			for _, rule := range role.Rules {
				assert.NotContains(t, rule.Verbs, "*", role.Name)
				assert.NotContains(t, rule.Resources, "*", role.Name)
			}
		case "Role":
			roles[into[rbacv1.Role](t, object).Name] = true
		}
	}
	for _, object := range objects {
		if kind := object["kind"]; kind != "ClusterRoleBinding" && kind != "RoleBinding" {
			continue
		}
		binding := into[rbacv1.ClusterRoleBinding](t, object)
		require.Len(t, binding.Subjects, 1)
		assert.Equal(t, names.ServiceAccountAgent, binding.Subjects[0].Name)
		assert.Equal(t, names.NamespaceAgent, binding.Subjects[0].Namespace)
		if binding.RoleRef.Name != "admin" {
			assert.True(t, roles[binding.RoleRef.Name], "%s names a role that is not shipped", binding.Name)
		}
	}
}

func TestKlusterletDeploymentIsHardened(t *testing.T) {
	deployment := into[appsv1.Deployment](t, split(t, KlusterletDeployment())[0])
	pod := deployment.Spec.Template.Spec
	assert.Equal(t, names.NamespaceAgent, deployment.Namespace)
	assert.Equal(t, names.ServiceAccountAgent, pod.ServiceAccountName)
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	require.Len(t, pod.Containers, 1)
	assert.True(t, *pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem)
	assert.NotNil(t, pod.Containers[0].LivenessProbe)
	assert.NotEmpty(t, pod.Containers[0].Resources.Limits)

	require.Len(t, pod.Volumes, 1)
	require.NotNil(t, pod.Volumes[0].EmptyDir)
	assert.Empty(t, pod.Volumes[0].EmptyDir.Medium, "memory does not outlive a reboot")
	assert.Equal(t, pod.Volumes[0].Name, pod.Containers[0].VolumeMounts[0].Name)
	args := strings.Join(pod.Containers[0].Args, " ")
	assert.Contains(t, args, "--work-cache-dir="+pod.Containers[0].VolumeMounts[0].MountPath)
	assert.Contains(t, args, "--work-cache-size=64")
	assert.Greater(t, pod.Volumes[0].EmptyDir.SizeLimit.Value(), int64(64<<20), "a pod that passes the limit is evicted")
}

// podOf returns the pod of the Deployment among files.
func podOf(t *testing.T, files ...[]byte) corev1.PodSpec {
	t.Helper()
	for _, object := range split(t, files...) {
		if object["kind"] == "Deployment" {
			return into[appsv1.Deployment](t, object).Spec.Template.Spec
		}
	}
	require.Fail(t, "there is no Deployment")
	return corev1.PodSpec{}
}

// TestTheHostedAgentIsTheSameAgent: but for the kubeconfig of its cluster, and the name that its namespace gives it.
func TestTheHostedAgentIsTheSameAgent(t *testing.T) {
	want, got := podOf(t, KlusterletDeployment()), podOf(t, KlusterletHosted("cluster1")...)
	assert.Equal(t, "external-managed-kubeconfig", got.Volumes[0].Secret.SecretName)
	assert.Equal(t, "/spoke/config", got.Containers[0].VolumeMounts[0].MountPath)
	assert.Contains(t, got.Containers[0].Args, "--spoke-kubeconfig=/spoke/config/kubeconfig")
	assert.Equal(t, "metadata.namespace", got.Containers[0].Env[0].ValueFrom.FieldRef.FieldPath)

	got.Volumes = got.Volumes[1:]
	agent, standard := &got.Containers[0], &want.Containers[0]
	agent.VolumeMounts = agent.VolumeMounts[1:]
	agent.Args = slices.DeleteFunc(agent.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "--spoke-kubeconfig=") || strings.HasPrefix(arg, "--hosted-addon-namespaces=")
	})
	agent.Env, standard.Env = agent.Env[1:], standard.Env[1:]
	assert.Equal(t, "system-cluster-critical", want.PriorityClassName, "a node that is full keeps the agent of its cluster")
	want.PriorityClassName = ""
	assert.Equal(t, want, got)
}

// TestTheHostedAgentHasRightsInItsNamespaceOnly: a hosting cluster runs the agents of many clusters, and none may read the
// credentials of another.
func TestTheHostedAgentHasRightsInItsNamespaceOnly(t *testing.T) {
	kinds := map[string]int{}
	for _, object := range split(t, KlusterletHosted("cluster1")...) {
		kind, _ := object["kind"].(string)
		kinds[kind]++
		meta, _ := object["metadata"].(map[string]any)
		switch kind {
		case "Namespace":
			assert.Equal(t, "cluster1", meta["name"])
		case "RoleBinding":
			for _, subject := range into[rbacv1.RoleBinding](t, object).Subjects {
				assert.Equal(t, "cluster1", subject.Namespace)
			}
			fallthrough
		default:
			assert.Equal(t, "cluster1", meta["namespace"], "%s %s", kind, meta["name"])
		}
	}
	assert.Equal(t, map[string]int{
		"Namespace": 1, "ServiceAccount": 1, "Role": 2, "RoleBinding": 2, "NetworkPolicy": 1,
		"Deployment": 1,
	}, kinds)
}

func TestKustomizationsNameEveryFile(t *testing.T) {
	for folder, fsys := range map[string]fs.FS{
		"klusterlet": klusterlet, "klusterlet-hosted": klusterletHosted,
		"samples/hello": samples, "samples/hub-config": samples, "samples/policies": samples,
	} {
		raw, err := fs.ReadFile(fsys, path.Join(folder, kustomizationFile))
		require.NoError(t, err)
		var kustomization struct{ Resources []string }
		require.NoError(t, yaml.Unmarshal(raw, &kustomization))
		entries, err := fs.ReadDir(fsys, folder)
		require.NoError(t, err)
		for _, entry := range entries {
			if entry.Name() != kustomizationFile && !entry.IsDir() {
				assert.Contains(t, kustomization.Resources, entry.Name(), folder)
			}
		}
	}
}

func TestHelloAsksForLeaseHealthAndGetsItsVariables(t *testing.T) {
	template, err := fs.ReadFile(Samples(), "hello/40-template.yaml")
	require.NoError(t, err)
	hello := into[addonv1alpha1.AddOnTemplate](t, split(t, template)[0])
	assert.Equal(t, "Lease", hello.Annotations[names.AnnotationHealthProbe])
	assert.Equal(t, "hello", hello.Spec.AddonName)
	config, err := fs.ReadFile(Samples(), "hello/30-config.yaml")
	require.NoError(t, err)
	values := into[addonv1alpha1.AddOnDeploymentConfig](t, split(t, config)[0])
	require.Len(t, values.Spec.CustomizedVariables, 1)
	assert.Contains(t, string(template), "{{"+values.Spec.CustomizedVariables[0].Name+"}}")
	for _, manifest := range hello.Spec.AgentSpec.Workload.Manifests {
		assert.NotEmpty(t, manifest.Raw)
	}
}
