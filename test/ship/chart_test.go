package ship_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spokelet/spokelet/test/ship/render"
)

func TestTheChartPassesHelmLint(t *testing.T) {
	for name, v := range variants() {
		t.Run(name, func(t *testing.T) {
			lint := action.NewLint()
			lint.Strict, lint.Namespace, lint.KubeVersion = true, v.namespace, render.KubeVersion()
			result := lint.Run([]string{repository(t, "manifests/chart")}, v.values)
			for _, message := range result.Messages {
				assert.LessOrEqual(t, message.Severity, support.InfoSev, "%s", message)
			}
			assert.Empty(t, result.Errors)
		})
	}
}

func TestValuesThatTheSchemaRefuses(t *testing.T) {
	tests := map[string]struct {
		values values
		want   string
	}{
		"no mode": {values{}, "at '/mode': value must be one of 'hub', 'klusterlet'"},
		"a mode that does not exist": {
			values{"mode": "agent"}, "at '/mode': value must be one of 'hub', 'klusterlet'",
		},
		"a misspelled value": {
			values{"mode": "hub", "replica": 2}, "additional properties 'replica' not allowed",
		},
		"a misspelled value of the image": {
			values{"mode": "hub", "image": values{"tags": "v1"}}, "at '/image': additional properties 'tags' not allowed",
		},
		"a digest that is none": {
			values{"mode": "hub", "image": values{"digest": "abc"}}, "at '/image/digest': 'abc' does not match pattern",
		},
		"a cluster that cannot have the name": {
			values{"mode": "klusterlet", "clusterName": "Cluster_1"},
			"at '/clusterName': 'Cluster_1' does not match pattern",
		},
		"replicas as text": {
			values{"mode": "hub", "replicas": "two"}, "at '/replicas': got string, want integer",
		},
		"a gate that is neither on nor off": {
			values{"mode": "hub", "featureGates": values{"A": "on"}}, "at '/featureGates/A': got string, want boolean",
		},
		"users to approve on an agent": {
			values{"mode": "klusterlet", "autoApprovedUsers": []any{"a"}},
			"at '/autoApprovedUsers': maxItems: got 1, want 0",
		},
		"an alert that does not exist": {
			values{"mode": "hub", "monitoring": values{"rules": values{"alerts": values{"ClusterSilent": values{}}}}},
			"invalid propertyName 'ClusterSilent'",
		},
		"a word among the flags": {
			values{"mode": "hub", "args": []any{"placement"}}, "at '/args/0': 'placement' does not match pattern",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := render.Helm(loadChart(t), render.Release{Name: "spokelet", Namespace: hubNamespace}, tc.values)
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

// object returns the object of a kind and a name.
func object[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) T {
	t.Helper()
	var found T
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &found, true))
			return found
		}
	}
	require.Fail(t, "there is no such object", "%s %s", kind, name)
	return found
}

func TestValuesOfTheDeployment(t *testing.T) {
	objects := helmed(t, "elsewhere", values{
		"mode": "klusterlet-hosted", "clusterName": "cluster7", "bootstrapSecret": "way-in",
		"managedKubeconfigSecret": "way-down",
		"image": values{
			"registry": "registry.example.com/mirror/", "tag": "v1.2.3", "pullPolicy": "Always",
			"pullSecrets": []any{values{"name": "registry"}},
		},
		"replicas": 3, "resources": values{"limits": values{"memory": "1Gi"}}, "nodeSelector": values{"role": "infra"},
		"tolerations":       []any{values{"operator": "Exists"}},
		"priorityClassName": "important", "podLabels": values{"team": "fleet"}, "podAnnotations": values{"a": "b"},
		"podSecurityContext": values{"runAsUser": nil},
		"featureGates":       values{"ClusterProperty": true, "AddonManagement": false},
		"logLevel":           4, "args": []any{"--workload-agent-workers=20"},
		"env":     []any{values{"name": "HTTPS_PROXY", "value": "p"}},
		"metrics": values{"enabled": true, "port": 9090},
		"networkPolicy": values{
			"apiServerPorts": []any{16443}, "egress": []any{values{"ports": []any{values{"port": 3128}}}},
		},
	})
	deployment := object[appsv1.Deployment](t, objects, "Deployment", "klusterlet-agent")
	pod := deployment.Spec.Template
	container := pod.Spec.Containers[0]
	assert.Equal(t, "elsewhere", deployment.Namespace)
	assert.Equal(t, int32(3), *deployment.Spec.Replicas)
	assert.Equal(t, "registry.example.com/mirror/spokelet/spokelet:v1.2.3", container.Image)
	assert.Equal(t, "Always", string(container.ImagePullPolicy))
	assert.Equal(t, "registry", pod.Spec.ImagePullSecrets[0].Name)
	assert.Equal(t, "1Gi", container.Resources.Limits.Memory().String())
	assert.Equal(t, "48Mi", container.Resources.Requests.Memory().String(), "what no value names is that of the base")
	assert.Equal(t, map[string]string{"app": "klusterlet-agent", "team": "fleet"}, pod.Labels)
	assert.Equal(t, map[string]string{"app": "klusterlet-agent"}, deployment.Spec.Selector.MatchLabels)
	assert.Equal(t, map[string]string{"a": "b"}, pod.Annotations)
	assert.Equal(t, map[string]string{"role": "infra"}, pod.Spec.NodeSelector)
	assert.Equal(t, "important", pod.Spec.PriorityClassName)
	assert.Len(t, pod.Spec.Tolerations, 1)
	assert.Nil(t, pod.Spec.SecurityContext.RunAsUser)
	assert.True(t, *pod.Spec.SecurityContext.RunAsNonRoot)
	assert.Equal(t, "way-down", pod.Spec.Volumes[0].Secret.SecretName)
	assert.Equal(t, "cluster7", container.Env[0].Value)
	assert.Nil(t, container.Env[0].ValueFrom)
	assert.Equal(t, "HTTPS_PROXY", container.Env[len(container.Env)-1].Name)
	assert.Equal(t, []string{
		"--bootstrap-kubeconfig-secret=way-in", "--feature-gates=AddonManagement=false,ClusterProperty=true",
		"--metrics-bind-address=:9090", "--v=4", "--workload-agent-workers=20",
	}, container.Args[len(container.Args)-5:])
	require.Len(t, pod.Spec.TopologySpreadConstraints, 1)

	network := object[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", "klusterlet-agent").Spec
	assert.Equal(t, 9090, network.Ingress[1].Ports[0].Port.IntValue())
	assert.Equal(t, 53, network.Egress[0].Ports[0].Port.IntValue())
	assert.Equal(t, 16443, network.Egress[1].Ports[0].Port.IntValue())
	assert.Equal(t, 3128, network.Egress[2].Ports[0].Port.IntValue())
}

// TestRightsOfWorks: those everywhere are for the aggregated role, those in namespaces are bound there and nowhere else.
func TestRightsOfWorks(t *testing.T) {
	classes := values{"apiGroups": []any{"storage.k8s.io"}, "resources": []any{"storageclasses"}, "verbs": []any{"get"}}
	objects := helmed(t, agentNamespace, values{"mode": "klusterlet", "workRights": values{
		"default": false, "rules": []any{classes}, "namespaces": []any{"team-a", "team-b"},
	}})
	const aggregate = "open-cluster-management.io/aggregate-to-work"
	everywhere := object[rbacv1.ClusterRole](t, objects, "ClusterRole", "spokelet:work-rights:everywhere")
	assert.Contains(t, everywhere.Labels, aggregate)
	assert.Equal(t, []string{"storageclasses"}, everywhere.Rules[0].Resources)
	named := object[rbacv1.ClusterRole](t, objects, "ClusterRole", "spokelet:work-rights")
	assert.Empty(t, named.Labels)
	assert.Len(t, named.Rules, 2)
	var bound []string
	for _, o := range objects {
		if o.GetKind() == "RoleBinding" && o.GetName() == "spokelet:work-rights" {
			bound = append(bound, o.GetNamespace())
		}
	}
	assert.Equal(t, []string{"team-a", "team-b"}, bound)
}

func TestAnImageByItsDigest(t *testing.T) {
	const digest = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	objects := helmed(t, hubNamespace, values{"mode": "hub", "image": values{"repository": "hub", "digest": digest}})
	deployment := object[appsv1.Deployment](t, objects, "Deployment", "spokelet-hub")
	assert.Equal(t, "hub@"+digest, deployment.Spec.Template.Spec.Containers[0].Image)
}

func TestWithoutNetworkPolicyAndDefinitions(t *testing.T) {
	for _, o := range helmed(t, agentNamespace, values{
		"mode": "klusterlet", "networkPolicy": values{"enabled": false}, "crds": values{"install": false},
	}) {
		assert.NotContains(t, []string{"NetworkPolicy", "CustomResourceDefinition"}, o.GetKind())
	}
}

// TestAHubInAnotherNamespace: the hub manager checks at its start that the policies were written for its account.
func TestAHubInAnotherNamespace(t *testing.T) {
	text, err := render.Helm(loadChart(t), render.Release{Name: "spokelet", Namespace: "elsewhere"}, values{"mode": "hub"})
	require.NoError(t, err)
	assert.NotContains(t, string(text), hubNamespace)
	assert.Contains(t, string(text), "system:serviceaccount:elsewhere:spokelet-hub")
	assert.Contains(t, string(text), "--webhook-service=elsewhere/spokelet-hub-webhook")
}
