package template_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/template"
)

// manifestsOfAnAgent are the objects that an ordinary agent consists of, besides a definition.
var manifestsOfAnAgent = []string{
	`
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: agents, labels: {app: agent, version: "{{VERSION}}"}}
spec:
  replicas: "{{REPLICAS}}"
  selector: {matchLabels: {app: agent}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: agent}, annotations: {prometheus.io/scrape: "true"}}
    spec:
      serviceAccountName: agent
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      initContainers:
      - {name: prepare, image: "quay.io/example/tools:v1", command: [sh, -c, "cp /in/* /out"]}
      containers:
      - name: agent
        image: "quay.io/example/agent:{{VERSION}}"
        args: ["--cluster={{CLUSTER_NAME}}", "--hub-kubeconfig={{HUB_KUBECONFIG}}", "--v={{LOG_LEVEL}}"]
        env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        ports: [{name: metrics, containerPort: 8080, protocol: TCP}]
        livenessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 10}
        resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 128Mi}}
        volumeMounts: [{name: config, mountPath: /etc/agent}]
      - name: proxy
        image: quay.io/example/proxy:v1
        args: [--upstream=http://127.0.0.1:8080, --secure-listen-address=0.0.0.0:8443]
      volumes: [{name: config, configMap: {name: agent}}]`,
	`{apiVersion: v1, kind: ServiceAccount, metadata: {name: agent, namespace: agents}}`,
	`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: example-agent}
rules:
- {apiGroups: [""], resources: [configmaps, secrets, events], verbs: [get, list, watch, create, update, patch, delete]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: [apps], resources: [deployments, daemonsets], verbs: [get, list, watch]}`,
	`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: example-agent}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: example-agent}
subjects: [{kind: ServiceAccount, name: agent, namespace: agents}]`,
	`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: example-agent, namespace: agents}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: example-agent}
subjects: [{kind: ServiceAccount, name: agent, namespace: agents}]`,
	`
apiVersion: v1
kind: ConfigMap
metadata: {name: agent, namespace: agents}
data:
  agent.yaml: |
    cluster: {{CLUSTER_NAME}}
    logLevel: {{LOG_LEVEL}}
    endpoint: https://example.com/v1/clusters/{{CLUSTER_NAME}}`,
}

// definition returns a CustomResourceDefinition of about 30 KB as JSON.
func definition(tb testing.TB) string {
	tb.Helper()
	properties := map[string]any{}
	for i := range 110 {
		properties[fmt.Sprintf("field%03d", i)] = map[string]any{
			"type":        "object",
			"description": strings.Repeat("What the field means to a reader. ", 3),
			"properties": map[string]any{
				"name":  map[string]any{"type": "string", "minLength": 1},
				"count": map[string]any{"type": "integer", "format": "int32"},
			},
		}
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "examples.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"kind": "Example", "plural": "examples"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}},
			}},
		},
	})
	require.NoError(tb, err)
	return string(raw)
}

// ordinary returns the input of an ordinary agent.
func ordinary(tb testing.TB) template.Input {
	tb.Helper()
	in := template.Input{
		Template: &template.Template{Name: "example", AddOn: "example", Registration: []addonv1alpha1.RegistrationSpec{
			{Type: addonv1alpha1.RegistrationTypeKubeClient},
		}},
		Config: &addonv1beta1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "configs", Name: "config"}},
		Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1", Annotations: map[string]string{
			"open-cluster-management.io/image-registries": `{"registries":[{"source":"quay.io/example","mirror":"m.example.com/e"}]}`,
		}}},
		AddOn: "example",
	}
	in.Config.Spec.CustomizedVariables = []addonv1beta1.CustomizedVariable{
		{Name: "VERSION", Value: "v1.2.3"}, {Name: "REPLICAS", Value: "2"}, {Name: "LOG_LEVEL", Value: "4"},
	}
	in.Config.Spec.AgentInstallNamespace = "open-cluster-management-agent-addon"
	in.Config.Spec.ProxyConfig = addonv1beta1.ProxyConfig{HTTPSProxy: "https://proxy.example.com", NoProxy: "10.0.0.0/8"}
	in.Config.Spec.NodePlacement = &addonv1beta1.NodePlacement{NodeSelector: map[string]string{"kubernetes.io/os": "linux"}}
	in.Config.Spec.ResourceRequirements = []addonv1beta1.ContainerResourceRequirements{
		{ContainerID: "deployments:agent:*", Resources: memory("64Mi")},
	}
	for _, manifest := range append([]string{definition(tb)}, manifestsOfAnAgent...) {
		u := &unstructured.Unstructured{Object: object(tb, manifest)}
		in.Template.Manifests = append(in.Template.Manifests, u.Object)
	}
	return in
}

func BenchmarkRenderAnOrdinaryAgent(b *testing.B) {
	in := ordinary(b)
	b.ReportAllocs()
	for b.Loop() {
		_, err := template.Render(in)
		require.NoError(b, err)
	}
}

func BenchmarkRenderACompiledTemplate(b *testing.B) {
	in := ordinary(b)
	compiled := template.Compile(in.Template)
	b.ReportAllocs()
	for b.Loop() {
		_, err := compiled.Render(in)
		require.NoError(b, err)
	}
}

func BenchmarkCompile(b *testing.B) {
	in := ordinary(b)
	b.ReportAllocs()
	for b.Loop() {
		template.Compile(in.Template)
	}
}
