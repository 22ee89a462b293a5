package main

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/hub/addon"
)

// update writes the objects that are expected again.
var update = flag.Bool("update", false, "write testdata/want")

// clusterOf returns a managed cluster.
func clusterOf(name string) *clusterv1.ManagedCluster {
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Status.Version.Kubernetes = "v1.35.4"
	return cluster
}

// request returns what the hub manager asks about cluster1.
func request() addon.Request {
	return addon.Request{
		Cluster: clusterOf("cluster1"),
		AddOn: &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: "cluster1", Name: "weather", Annotations: map[string]string{},
		}},
	}
}

// configure adds an AddOnDeploymentConfig with a spec in YAML.
func configure(t *testing.T, r *addon.Request, spec string) {
	t.Helper()
	content := map[string]any{
		"apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "AddOnDeploymentConfig",
		"metadata": map[string]any{"namespace": "weather-central", "name": "weather"},
	}
	var parsed map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(spec), &parsed))
	content["spec"] = parsed
	chosen := addon.ChosenConfig{Object: &unstructured.Unstructured{Object: content}}
	chosen.Group, chosen.Resource = addonv1beta1.GroupName, "addondeploymentconfigs"
	chosen.Namespace, chosen.Name, chosen.SpecHash = "weather-central", "weather", "hash"
	r.Choice.Configs = append(r.Choice.Configs, chosen)
}

// host lets cluster hosting1 host the agent.
func host(r *addon.Request) {
	r.Hosting = clusterOf("hosting1")
	r.AddOn.Annotations["addon.open-cluster-management.io/hosting-cluster-name"] = "hosting1"
}

// everything is a configuration with all that the chart understands.
const everything = `
agentInstallNamespace: stations
customizedVariables:
  - {name: interval, value: 2m}
nodePlacement:
  nodeSelector: {zone: north}
  tolerations:
    - {key: spot, operator: Exists, effect: NoSchedule}
proxyConfig: {httpProxy: "http://proxy:3128", httpsProxy: "http://proxy:3128", noProxy: ".example.com"}
registries:
  - {source: registry.example.com/weather, mirror: mirror.example.com/stations}
resourceRequirements:
  - {containerID: "*:*:*", resources: {requests: {memory: 16Mi}}}
  - {containerID: "deployments:weather-agent:agent", resources: {requests: {memory: 32Mi}, limits: {memory: 64Mi}}}
`

func TestObjects(t *testing.T) {
	tests := map[string]struct {
		file   string
		change func(r *addon.Request)
	}{
		"on the managed cluster":                {"default.yaml", func(*addon.Request) {}},
		"on a hosting cluster":                  {"hosted.yaml", host},
		"with an AddOnDeploymentConfig":         {"configured.yaml", func(r *addon.Request) { configure(t, r, everything) }},
		"hosted, with an AddOnDeploymentConfig": {"hosted-configured.yaml", func(r *addon.Request) { host(r); configure(t, r, everything) }},
		"values of the cluster count most": {"annotated.yaml", func(r *addon.Request) {
			configure(t, r, everything)
			r.AddOn.Annotations["addon.open-cluster-management.io/values"] = `{"replicas": 2, "interval": "10s"}`
		}},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			agent, err := weather()
			require.NoError(t, err)
			r := request()
			tc.change(&r)
			rendering, err := agent.Render(t.Context(), r)
			require.NoError(t, err)
			compare(t, "testdata/want/"+tc.file, rendering.Objects)
		})
	}
}

// compare compares objects with those of a file.
func compare(t *testing.T, file string, objects []*unstructured.Unstructured) {
	t.Helper()
	if *update {
		var text []byte
		for _, object := range objects {
			document, err := yaml.Marshal(object.Object)
			require.NoError(t, err)
			text = append(append(text, "---\n"...), document...)
		}
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	want, err := addon.ParseYAML(string(text))
	require.NoError(t, err)
	wanted, err := json.MarshalIndent(want, "", " ")
	require.NoError(t, err)
	made, err := json.MarshalIndent(objects, "", " ")
	require.NoError(t, err)
	assert.Equal(t, string(wanted), string(made), "go test . -update writes the file")
}

func TestWhatTheHubPrepares(t *testing.T) {
	agent, err := weather()
	require.NoError(t, err)
	resolved, err := agent.Resolve(t.Context(), request())
	require.NoError(t, err)
	require.Len(t, resolved.Registrations, 2)
	custom := resolved.Registrations[1].CustomSigner
	assert.Equal(t, "weather.example.com/stations", custom.SignerName)
	assert.Equal(t, addonv1beta1.BaseSubject{User: "station-cluster1", Groups: []string{"stations"}}, custom.Subject.BaseSubject)
	assert.Equal(t, addon.HealthDeployments, resolved.Setup.Health)
	bound := func(namespace, kind, name, group string) addon.Permission {
		return addon.Permission{
			Namespace: namespace, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		}
	}
	assert.Equal(t, []addon.Permission{
		bound("cluster1", "ClusterRole", "weather-reporter", "system:open-cluster-management:cluster:cluster1:addon:weather"),
		bound("weather-central", "Role", "weather-reader",
			"system:open-cluster-management:cluster:cluster1:addon:weather"),
	}, resolved.Setup.Permissions)
	ca, signs, err := agent.SigningCA(t.Context(), request(), "weather.example.com/stations")
	require.NoError(t, err)
	assert.True(t, signs)
	assert.Equal(t, types.NamespacedName{Namespace: "weather-central", Name: "weather-ca"}, ca.Secret)

	configured := request()
	configure(t, &configured, everything)
	resolved, err = agent.Resolve(t.Context(), configured)
	require.NoError(t, err)
	assert.Equal(t, "stations", resolved.Setup.Namespace)
}

// Each message names the add-on, the cluster and what to correct.
func TestBadValues(t *testing.T) {
	tests := map[string]struct {
		change func(r *addon.Request)
		want   string
	}{
		"a value of a wrong type": {func(r *addon.Request) {
			r.AddOn.Annotations["addon.open-cluster-management.io/values"] = `{"replicas": "two"}`
		}, "/replicas"},
		"a variable against the schema": {func(r *addon.Request) {
			configure(t, r, "customizedVariables: [{name: interval, value: often}]")
		}, "/interval"},
		"an annotation that is no JSON": {func(r *addon.Request) {
			r.AddOn.Annotations["addon.open-cluster-management.io/values"] = "replicas: 2"
		}, "is no JSON object"},
		"a namespace that is no name": {func(r *addon.Request) {
			configure(t, r, "agentInstallNamespace: Stations")
		}, `the install namespace "Stations" is not valid`},
		"a cluster that is too old": {func(r *addon.Request) { r.Cluster.Status.Version.Kubernetes = "v1.20.0" },
			"it needs Kubernetes >=1.28.0-0, and the cluster runs v1.20.0"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			agent, err := weather()
			require.NoError(t, err)
			r := request()
			tc.change(&r)
			_, err = agent.Render(t.Context(), r)
			require.ErrorContains(t, err, "add-on weather on cluster cluster1: ")
			require.ErrorContains(t, err, tc.want)
			assert.True(t, addon.IsInvalid(err))
		})
	}
}

func TestAClusterThatHasNotReportedIsWaitedFor(t *testing.T) {
	agent, err := weather()
	require.NoError(t, err)
	r := request()
	r.Cluster.Status.Version.Kubernetes = ""
	_, err = agent.Render(t.Context(), r)
	assert.True(t, addon.IsNotReady(err), "%v", err)
}

// The page for authors shows this program, in full.
func TestTheProgramOnThePageForAuthorsIsThisOne(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations/write-an-addon.md")
	require.NoError(t, err)
	program, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, code, found := strings.Cut(string(program), "\npackage main\n")
	require.True(t, found)
	assert.Contains(t, string(page), "```go\npackage main\n"+code+"```\n")
	assert.Less(t, strings.Count(code, "\n"), 70, "the program is small")
}
