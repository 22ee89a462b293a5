package main

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/hub/addon"
)

// update writes the objects that are expected again.
var update = flag.Bool("update", false, "write testdata/want")

// request returns what the hub manager asks about cluster1, with an AddOnDeploymentConfig unless its spec is empty.
func request(t *testing.T, spec, values string) addon.Request {
	t.Helper()
	r := addon.Request{
		Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}},
		AddOn: &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
			Namespace: "cluster1", Name: "uptime",
			Annotations: map[string]string{"addon.open-cluster-management.io/values": values},
		}},
	}
	if spec == "" {
		return r
	}
	var parsed map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(spec), &parsed))
	chosen := addon.ChosenConfig{Object: &unstructured.Unstructured{Object: map[string]any{"spec": parsed}}}
	chosen.Group, chosen.Resource = addonv1beta1.GroupName, "addondeploymentconfigs"
	r.Choice.Configs = append(r.Choice.Configs, chosen)
	return r
}

func TestObjects(t *testing.T) {
	const everything = `
agentInstallNamespace: monitoring
customizedVariables: [{name: Interval, value: 1m}]
nodePlacement:
  nodeSelector: {zone: north}
  tolerations: [{key: spot, operator: Exists, effect: NoSchedule}]
registries: [{source: registry.example.com, mirror: mirror.example.com}]
`
	tests := map[string]struct{ file, spec, values string }{
		"on a cluster":                     {"default.yaml", "", ""},
		"with an AddOnDeploymentConfig":    {"configured.yaml", everything, ""},
		"values of the cluster count most": {"annotated.yaml", everything, `{"Interval": "5s"}`},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			agent, err := uptime()
			require.NoError(t, err)
			rendering, err := agent.Render(t.Context(), request(t, tc.spec, tc.values))
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
	agent, err := uptime()
	require.NoError(t, err)
	resolved, err := agent.Resolve(t.Context(), request(t, "agentInstallNamespace: monitoring", ""))
	require.NoError(t, err)
	assert.Equal(t, addon.Setup{Namespace: "monitoring", Health: addon.HealthLease}, resolved.Setup)
	assert.Empty(t, resolved.Registrations, "the agent does not use the hub")
}

func TestBadInput(t *testing.T) {
	tests := map[string]struct {
		request func(t *testing.T) addon.Request
		want    string
	}{
		"an annotation that is no JSON": {func(t *testing.T) addon.Request {
			t.Helper()
			return request(t, "", "Interval=5s")
		}, "is no JSON object"},
		"a value that breaks the YAML": {func(t *testing.T) addon.Request {
			t.Helper()
			return request(t, "", `{"Image": "a: b: c"}`)
		}, "file manifests/agent.yaml, in the result"},
		"a hosting cluster": {func(t *testing.T) addon.Request {
			t.Helper()
			r := request(t, "", "")
			r.AddOn.Annotations["addon.open-cluster-management.io/hosting-cluster-name"] = "hosting1"
			return r
		}, "the add-on does not support hosted mode"},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			agent, err := uptime()
			require.NoError(t, err)
			_, err = agent.Render(t.Context(), tc.request(t))
			require.ErrorContains(t, err, "add-on uptime on cluster cluster1: ")
			require.ErrorContains(t, err, tc.want)
			assert.True(t, addon.IsInvalid(err))
		})
	}
}
