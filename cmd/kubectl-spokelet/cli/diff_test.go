package cli

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	pathConfigs = "/apis/addon.open-cluster-management.io/v1alpha1/addondeploymentconfigs"
)

// typed gives an object its kind, as lists of an API server have it.
func kinded(apiVersion, kind string, o map[string]any) map[string]any {
	o["apiVersion"], o["kind"] = apiVersion, kind
	delete(o, "status")
	return o
}

// template is the AddOnTemplate of the add-on logs with an image, and further manifests.
func template(t *testing.T, image string, further ...string) map[string]any {
	t.Helper()
	text := fmt.Sprintf(`
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: logs}
spec:
  addonName: logs
  agentSpec:
    workload:
      manifests:
        - apiVersion: apps/v1
          kind: Deployment
          metadata: {name: agent, namespace: logs}
          spec:
            selector: {matchLabels: {app: logs}}
            template:
              metadata: {labels: {app: logs}}
              spec:
                containers:
                  - {name: agent, image: %q, args: ["--cluster={{CLUSTER_NAME}}", "--level={{LEVEL}}"]}
        - apiVersion: v1
          kind: Secret
          metadata: {name: logs, namespace: logs}
          stringData: {password: "{{PASSWORD}}"}
`, image)
	for _, one := range further {
		text += "        - " + one + "\n"
	}
	var o map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &o))
	return o
}

// variables is an AddOnDeploymentConfig.
func variables(name, level, password string) map[string]any {
	o := kinded("addon.open-cluster-management.io/v1alpha1", "AddOnDeploymentConfig", of("add-ons", name))
	o["spec"] = map[string]any{"agentInstallNamespace": "logs", "customizedVariables": []any{
		map[string]any{"name": "LEVEL", "value": level}, map[string]any{"name": "PASSWORD", "value": password},
	}}
	return o
}

// rack is a hub with an add-on made of a template on nine clusters, of which two have a configuration of their own.
func rack(t *testing.T) *hub {
	t.Helper()
	const group = "addon.open-cluster-management.io"
	h := &hub{lists: map[string][]map[string]any{
		pathTemplates: {template(t, "registry.local/logs:1.9", `{apiVersion: v1, kind: ConfigMap, metadata: {name: legacy-filter, namespace: logs}}`)},
		pathConfigs:   {variables("usual", "info", "hunter2"), variables("loud", "debug", "hunter2")},
	}}
	definition := kinded(group+"/v1beta1", "ClusterManagementAddOn", of("", "logs"))
	definition["spec"] = map[string]any{
		"defaultConfigs": []any{
			map[string]any{"group": group, "resource": "addontemplates", "name": "logs"},
			map[string]any{"group": group, "resource": "addondeploymentconfigs", "namespace": "add-ons", "name": "usual"},
		},
		"installStrategy": map[string]any{"type": "Placements", "placements": []any{map[string]any{
			"name": "all", "namespace": "add-ons",
			"rolloutStrategy": map[string]any{"type": "Progressive", "progressive": map[string]any{
				"maxConcurrency": 4, "minSuccessTime": "10m",
			}},
		}}},
	}
	h.lists[pathDefinitions] = []map[string]any{definition}
	h.lists[pathPlacements] = []map[string]any{kinded("cluster.open-cluster-management.io/v1beta1", "Placement", of("add-ons", "all"))}
	page := kinded("cluster.open-cluster-management.io/v1beta1", "PlacementDecision",
		labelled(of("add-ons", "all-decision-1"), map[string]any{names.LabelPlacement: "all", names.LabelDecisionGroupIndex: "0"}))
	var decisions []any
	for i := range 9 {
		name := fmt.Sprintf("rack-%d", i+1)
		c := kinded("cluster.open-cluster-management.io/v1", "ManagedCluster", labelled(cluster(name), map[string]any{"room": fmt.Sprint(i % 2)}))
		c["status"] = map[string]any{"conditions": []any{condition("HubAcceptedManagedCluster", "True", "Accepted", "", 9)}}
		h.lists[pathClusters] = append(h.lists[pathClusters], c)
		a := kinded(group+"/v1beta1", "ManagedClusterAddOn", of(name, "logs"))
		if i > 6 {
			a["spec"] = map[string]any{"configs": []any{
				map[string]any{"group": group, "resource": "addondeploymentconfigs", "namespace": "add-ons", "name": "loud"},
			}}
		}
		h.lists[pathAddOns] = append(h.lists[pathAddOns], a)
		decisions = append(decisions, map[string]any{"clusterName": name, "reason": ""})
	}
	page["status"] = map[string]any{"decisions": decisions}
	h.lists[pathDecisions] = []map[string]any{page}
	return h
}

// file writes objects as YAML, and changes to the folder of the file.
func file(t *testing.T, all ...map[string]any) string {
	t.Helper()
	var text []byte
	for _, o := range all {
		raw, err := yaml.Marshal(o)
		require.NoError(t, err)
		text = append(append(text, "---\n"...), raw...)
	}
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("new.yaml", text, 0o600))
	return "new.yaml"
}

func TestWhatAChangeWouldDo(t *testing.T) {
	next := func() map[string]any {
		return template(t, "registry.local/logs:1.10",
			`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: agent, namespace: logs}, spec: {podSelector: {}}}`)
	}
	for name, tc := range map[string]struct {
		edits  []map[string]any
		args   []string
		status int
	}{
		"diff":             {[]map[string]any{next()}, nil, statusProblem},
		"diff-two":         {[]map[string]any{next(), variables("loud", "trace", "hunter3")}, nil, statusProblem},
		"diff-rooms":       {[]map[string]any{next()}, []string{"--clusters", "room=1"}, statusProblem},
		"diff-json":        {[]map[string]any{variables("loud", "trace", "hunter3")}, []string{"-o", "json"}, statusProblem},
		"diff-nothing":     {[]map[string]any{variables("usual", "info", "hunter2")}, nil, statusWell},
		"diff-long-broken": {[]map[string]any{variables("other", "x", "y")}, []string{"--clusters", "room=1"}, statusWell},
		"diff-broken":      {[]map[string]any{template(t, "{{NOWHERE}}")}, nil, statusProblem},
	} {
		t.Run(name, func(t *testing.T) {
			h := rack(t)
			if name == "diff-long-broken" {
				h.lists[pathTemplates][0] = template(t, "{{NOWHERE}}")
			}
			here, err := os.Getwd()
			require.NoError(t, err)
			got := plays(t, h, append([]string{"diff", "addon", "logs", "-f", file(t, tc.edits...)}, tc.args...)...)
			t.Chdir(here) // The file is named as it was written.
			assert.Equal(t, tc.status, got.status, got.errs)
			assert.Empty(t, got.errs)
			assert.NotContains(t, got.out, "hunter", "the value of a Secret is shown")
			golden(t, name, got.out)
			for _, request := range h.asked {
				assert.Regexp(t, "^GET ", request)
			}
		})
	}
}

// An agent writes a time that Go does not read: its cluster is left out, and told.
func TestAChangeIsComparedWhereAClusterCannotBeDecoded(t *testing.T) {
	h := rack(t)
	status := part(h.lists[pathClusters][2], "status")
	status["conditions"] = []any{map[string]any{"type": "Any", "status": "True", "lastTransitionTime": "2026-11-29t08:00:00z"}}
	got := plays(t, h, "diff", "addon", "logs", "-f", file(t, template(t, "registry.local/logs:1.10")))
	assert.Equal(t, statusProblem, got.status, got.errs)
	assert.Contains(t, got.out, "addon/logs on 8 clusters")
	assert.Contains(t, got.out, "1 object of managedclusters.cluster.open-cluster-management.io cannot be decoded: rack-3")
}

func TestAWrongUseOfDiff(t *testing.T) {
	for sentence, tc := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"no file":                {[]string{"diff", "addon", "logs"}, statusUse, "-f names the files"},
		"no add-on":              {[]string{"diff", "logs", "-f", "x"}, statusUse, "it is diff addon NAME"},
		"a file that is missing": {[]string{"diff", "addon", "logs", "-f", "/nowhere.yaml"}, statusUse, "/nowhere.yaml"},
		"a bundle":               {[]string{"diff", "addon", "logs", "-f", "x", "--from", "y.tgz"}, statusUse, "a bundle has no content"},
		"a selector":             {[]string{"diff", "addon", "logs", "-f", "x", "--clusters", "=,="}, statusUse, "--clusters"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := plays(t, rack(t), tc.args...)
			assert.Equal(t, tc.status, got.status)
			assert.Contains(t, got.errs, tc.says)
		})
	}
	h := rack(t)
	h.forbidden = map[string]bool{"addontemplates": true}
	got := plays(t, h, "diff", "addon", "logs", "-f", file(t, variables("usual", "x", "y")))
	assert.Equal(t, statusBlind, got.status)
	assert.Contains(t, got.out+got.errs, "addontemplates", "the right that is missing is named")
}

// The values of a Secret are also where it is part of another object, and where a program kept it in an annotation.
func TestTheValuesOfSecretsAreMaskedWhereverTheyAre(t *testing.T) {
	for sentence, manifest := range map[string]string{
		"in a work": `{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: w, namespace: logs}, spec: ` +
			`{workload: {manifests: [{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: "{{PASSWORD}}"}}]}}}`,
		"in an annotation": `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: logs, annotations: ` +
			`{kubectl.kubernetes.io/last-applied-configuration: "password {{PASSWORD}}"}}}`,
		"in data that is not an object": `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: logs}, stringData: "{{PASSWORD}}"}`,
	} {
		t.Run(sentence, func(t *testing.T) {
			h := rack(t)
			h.lists[pathTemplates][0] = template(t, "registry.local/logs:1.9", manifest)
			got := plays(t, h, "diff", "addon", "logs", "-f", file(t, variables("usual", "info", "hunter3")))
			assert.Equal(t, statusProblem, got.status, got.errs)
			assert.NotContains(t, got.out, "hunter")
		})
	}
}

// A Secret that the API server would refuse is still compared.
func TestASecretWithAValueThatIsNotTextIsCompared(t *testing.T) {
	with := func(value string) map[string]any {
		return template(t, "registry.local/logs:1.9",
			`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: logs}, stringData: {list: [`+value+`]}}`)
	}
	h := rack(t)
	h.lists[pathTemplates][0] = with("a")
	assert.NotPanics(t, func() {
		got := plays(t, h, "diff", "addon", "logs", "-f", file(t, with("b")))
		assert.Equal(t, statusProblem, got.status, got.errs)
	})
}

// AddOnDeploymentConfigs have a version v1beta1, too, and a hub may serve that alone.
func TestAChangeIsComparedOnAHubOfTheNewerAPI(t *testing.T) {
	h := rack(t)
	const beta = "/apis/addon.open-cluster-management.io/v1beta1/addondeploymentconfigs"
	for _, c := range h.lists[pathConfigs] {
		c["apiVersion"] = "addon.open-cluster-management.io/v1beta1"
	}
	h.lists[beta] = h.lists[pathConfigs]
	delete(h.lists, pathConfigs)
	got := plays(t, h, "diff", "addon", "logs", "-f", file(t, template(t, "registry.local/logs:1.10")))
	assert.Equal(t, statusProblem, got.status, got.errs)
}
