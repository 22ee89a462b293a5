package render_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/render"
)

const (
	goodTemplate = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: tea}
spec:
  addonName: tea
  agentSpec:
    workload:
      manifests:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: tea, namespace: tea}, data: {kind: "black"}}
`
	goodManagement = `apiVersion: addon.open-cluster-management.io/v1beta1
kind: ClusterManagementAddOn
metadata: {name: tea}
spec:
  defaultConfigs:
    - {group: addon.open-cluster-management.io, resource: addontemplates, name: tea}
`
	twoPlacements = `  installStrategy:
    type: Placements
    placements:
      - {namespace: p, name: one}
      - namespace: p
        name: two
        configs: [{group: addon.open-cluster-management.io, resource: addontemplates, name: other}]
`
)

// with returns the good template with a part replaced, which must be there.
func with(t *testing.T, part, by string) string {
	t.Helper()
	require.Contains(t, goodTemplate, part)
	return strings.Replace(goodTemplate, part, by, 1)
}

// Shows: hub/render-refuses
func TestWhatIsRefused(t *testing.T) {
	cluster := render.Options{Clusters: []string{"c1"}}
	for sentence, tc := range map[string]struct {
		text    string
		options render.Options
		message string
	}{
		"a text that is no YAML": {
			text: "a: b: c\n", message: "f.yaml:1: it is no YAML: ",
		},
		"a key that stands twice": {
			text: goodTemplate + "---\nkind: A\nkind: B\n", message: `f.yaml:11: it is no YAML: `,
		},
		"a text that is no object": {text: "- a\n", message: `f.yaml:1: it is no object but "- a"`},
		"an object without a kind": {
			text: "\n# comment\nmetadata: {name: x}\n", message: "f.yaml:3: an object without a kind x: apiVersion: it is required; kind: it is required",
		},
		"a name that is a number": {
			text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 1}\n", message: "f.yaml:1: metadata.name: it is no text; put it in quotes",
		},
		"a misspelled kind": {
			text:    with(t, "AddOnTemplate", "AddonTemplate"),
			message: "f.yaml:1: AddonTemplate tea: the hub does not serve this kind; it serves addon.open-cluster-management.io/v1alpha1 AddOnTemplate, addon.open-cluster-management.io/v1beta1 AddOnTemplate",
		},
		"a kind of another name": {
			text:    with(t, "AddOnTemplate", "Template"),
			message: "f.yaml:1: Template tea: the hub does not serve this kind; in this group it serves addon.open-cluster-management.io/v1alpha1 AddOnDeploymentConfig, ",
		},
		"a misspelled group": {
			text:    with(t, "addon.open-cluster-management.io", "addons.open-cluster-management.io"),
			message: "f.yaml:1: AddOnTemplate tea: the hub does not serve this kind; it serves",
		},
		"a version that is not served": {
			text:    with(t, "v1alpha1", "v1"),
			message: "f.yaml:1: AddOnTemplate tea: the hub does not serve this kind; it serves",
		},
		"an unknown field": {
			text:    with(t, "    workload:", "    workloads:"),
			message: "f.yaml:1: AddOnTemplate tea: spec.agentSpec.workloads: there is no such field; there are deleteOption, executor, manifestConfigs, workload",
		},
		"an unknown field of the metadata": {
			text:    with(t, "{name: tea}", "{name: tea, label: {a: b}}"),
			message: `f.yaml:1: AddOnTemplate tea: metadata: unknown field "label"`,
		},
		"a value of another type": {
			text:    with(t, "addonName: tea", "addonName: 3"),
			message: "f.yaml:1: AddOnTemplate tea: spec.addonName must be of type string",
		},
		"a value that is not allowed": {
			text:    goodManagement + "  installStrategy: {type: Everywhere}\n",
			message: "f.yaml:1: ClusterManagementAddOn tea: spec.installStrategy.type should be one of [Manual Placements]",
		},
		"a missing namespace": {
			text:    "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: ManagedClusterAddOn\nmetadata: {name: tea}\nspec: {}\n",
			message: "f.yaml:1: ManagedClusterAddOn tea: metadata.namespace: Required value",
		},
		"an object that stands twice": {
			text: goodTemplate + "---\n" + goodTemplate, message: "f.yaml:11: AddOnTemplate tea: it is in f.yaml:1, too; remove one of the two",
		},
		"a decision of no placement": {
			text:    "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: PlacementDecision\nmetadata: {name: d, namespace: p}\n",
			message: "f.yaml:1: PlacementDecision p/d: metadata.labels: it needs label cluster.open-cluster-management.io/placement",
		},
		"a namespace that is no name": {
			text:    "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: ManagedClusterAddOn\nmetadata: {name: tea, namespace: a.b}\nspec: {}\n",
			message: `f.yaml:1: ManagedClusterAddOn a.b/tea: metadata.namespace: Invalid value: "a.b"`,
		},
		"a manifest with a variable where the API server takes none": {
			text:    with(t, "namespace: tea}", `namespace: "{{CLUSTER_NAME}}"}`),
			message: "f.yaml:1: AddOnTemplate tea: spec.agentSpec.workload.manifests[0].metadata.namespace: Invalid value: ",
		},
		"a manifest without a kind": {
			text: with(t, "kind: ConfigMap, ", ""), message: "spec.agentSpec.workload.manifests[0].kind: it is required",
		},
		"a work that the API server refuses": {
			text: goodManagement + `    - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: p, name: c}
---
apiVersion: addon.open-cluster-management.io/v1beta1
kind: AddOnDeploymentConfig
metadata: {name: c, namespace: p}
spec: {customizedVariables: [{name: ROOM, value: a/b}]}
---
` + with(t, "{name: tea, namespace: tea}", `{name: "{{ROOM}}", namespace: tea}`),
			options: cluster, message: `add-on tea on cluster c1: the API server refuses ManifestWork c1/addon-tea-deploy-0: spec.workload.manifests[0].metadata.name: Invalid value: "a/b"`,
		},
		"a cluster whose name is none": {
			text: goodTemplate, options: render.Options{Clusters: []string{"A B"}}, message: `--cluster: "A B" is no name of a cluster: `,
		},
		"nothing": {
			message: "there is nothing to render: no file has a ClusterManagementAddOn or a ManagedClusterAddOn",
		},
		"an add-on that nobody installs": {
			text: goodManagement + "---\n" + goodTemplate, message: "there is nothing to render: add-on tea is on no cluster: name one with --cluster, or add a ManagedCluster to the files",
		},
		"an add-on that people install elsewhere": {
			text:    goodManagement + "---\n" + goodTemplate + "---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: c1}\nspec: {hubAcceptsClient: true}\n",
			message: "people install add-on tea, and no file has a ManagedClusterAddOn c1/tea: add it, or name the cluster with --cluster",
		},
		"an add-on that no file names": {
			text: goodTemplate, options: render.Options{AddOns: []string{"coffee"}},
			message: "--add-on: the files do not name add-on coffee, but tea",
		},
		"an add-on of somebody else": {
			text:    "apiVersion: addon.open-cluster-management.io/v1beta1\nkind: ClusterManagementAddOn\nmetadata: {name: tea}\nspec: {}\n",
			options: cluster, message: "add-on tea is not made of AddOnTemplates: its ClusterManagementAddOn does not list them among its configurations, so the program of its author renders it",
		},
		"an add-on with two templates and nothing that chooses": {
			text:    goodTemplate + "---\n" + with(t, "{name: tea}", "{name: tea2}"),
			options: cluster, message: "add-on tea: its ClusterManagementAddOn is not among the files, and the AddOnTemplates with this spec.addonName are tea, tea2: add the ClusterManagementAddOn",
		},
		"placements of which each may select the cluster": {
			text: goodManagement + twoPlacements + "---\n" + goodTemplate, options: cluster,
			message: "add-on tea: its Placements p/one, p/two have different configurations, and no file has a PlacementDecision that names the clusters of each: add PlacementDecisions",
		},
		"a template that no file has": {
			text: goodManagement, options: cluster,
			message: `add-on tea on cluster c1: addontemplates "tea" does not exist (named by defaults of ClusterManagementAddOn tea)`,
		},
		"a variable without a value": {
			text:    goodManagement + "---\n" + with(t, `"black"`, `"{{KIND}}"`),
			options: cluster, message: `(configurations: addontemplates "tea" in f.yaml:8)`,
		},
		"a manifest without a name": {
			text:    goodManagement + "---\n" + with(t, "{name: tea, namespace: tea}", "{namespace: tea}"),
			options: cluster, message: "metadata.name",
		},
		"a location that does not exist": {
			text: goodManagement + "---\n" + with(t, "{name: tea, namespace: tea}",
				"{name: tea, namespace: tea, annotations: {addon.open-cluster-management.io/hosted-manifest-location: host}}") +
				"---\napiVersion: addon.open-cluster-management.io/v1beta1\nkind: ManagedClusterAddOn\nmetadata: {name: tea, namespace: c1, annotations: {addon.open-cluster-management.io/hosting-cluster-name: h}}\nspec: {}\n",
			options: cluster, message: `add-on tea on cluster c1: ConfigMap tea/tea has location "host"`,
		},
		"permissions in the namespace of another cluster": {
			text: goodManagement + "---\n" + goodTemplate + `  registration:
    - type: KubeClient
      kubeClient:
        hubPermissions:
          - {type: SingleNamespace, singleNamespace: {namespace: c2, roleRef: {kind: Role, name: r, apiGroup: rbac.authorization.k8s.io}}}
`, options: render.Options{Clusters: []string{"c1", "c2"}}, message: "in namespace c2, which is the namespace of a managed cluster",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			text, err := render.Program{Name: "p"}.Render(t.Context(), []render.File{{Name: "f.yaml", Text: tc.text}}, tc.options)
			require.ErrorContains(t, err, tc.message)
			assert.Empty(t, text, "nothing is printed beside an error")
		})
	}
}

func TestAllThatIsWrongIsReportedAtOnce(t *testing.T) {
	var files []render.File
	for i := range 3 {
		files = append(files, render.File{Name: fmt.Sprintf("%d.yaml", i), Text: "kind: K\n"})
	}
	_, err := render.Program{}.Render(t.Context(), files, render.Options{})
	require.Error(t, err)
	assert.Len(t, strings.Split(err.Error(), "\n"), 3, err.Error())
}

func TestAnAddOnThatPanicsStopsNoProgram(t *testing.T) {
	agent, err := addon.New(addon.Options{Name: "tea", Manifests: addon.ManifestsFunc(
		func(context.Context, addon.Input) ([]runtime.Object, error) { panic("no water") })})
	require.NoError(t, err)
	agents, err := addon.NewFixed(agent)
	require.NoError(t, err)
	program := render.Program{Name: "tea-manager", Agents: agents, AddOns: []string{"tea"}}
	_, err = program.Render(t.Context(), nil, render.Options{Clusters: []string{"c1"}})
	require.ErrorContains(t, err, "add-on tea on cluster c1: ")
	require.ErrorContains(t, err, "no water")
	assert.Equal(t, 1, strings.Count(err.Error(), "on cluster c1"), "the add-on and the cluster are named once")
}

// What a file contains cannot leave a comment and become an object.
func TestACommentStaysAComment(t *testing.T) {
	text, err := render.Program{Name: "p"}.Render(t.Context(), []render.File{{Name: "f.yaml\n---\nkind: Evil", Text: goodManagement + "---\n" + goodTemplate +
		`  registration:
    - type: CustomSigner
      customSigner: {signerName: example.com/tea, subject: {user: "a\n---\nkind: Evil", groups: ["b\r\nkind: Evil"]}, signingCA: {name: s}}
`}}, render.Options{Clusters: []string{"c1"}})
	require.NoError(t, err)
	for _, object := range documents(t, text) {
		assert.Equal(t, "ManifestWork", object["kind"])
	}
	assert.Contains(t, text, "user a --- kind: Evil, groups b  kind: Evil")
}

func FuzzRender(f *testing.F) {
	f.Add(goodManagement + "---\n" + goodTemplate)
	f.Add(goodManagement + twoPlacements)
	f.Add("apiVersion: v1\nkind: List\nitems: [{}, {kind: List, items: []}]\n")
	f.Add("apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: ManagedClusterAddOn\nmetadata: {name: tea, namespace: c1}\nspec: {configs: [{}]}\n")
	f.Add("apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: a, labels: null}\nspec: null\n")
	f.Add("kind: !!binary a\napiVersion: &a [*a]\nmetadata: {<<: 1}\n")
	f.Fuzz(func(t *testing.T, text string) {
		program, options := render.Program{Name: "p"}, render.Options{Clusters: []string{"c1"}}
		files := []render.File{{Name: "f.yaml", Text: text}}
		result, err := program.Render(t.Context(), files, options)
		if err != nil {
			assert.NotEmpty(t, err.Error())
			assert.Empty(t, result)
			return
		}
		again, err := program.Render(t.Context(), files, options)
		require.NoError(t, err)
		assert.Equal(t, result, again)
		for _, object := range documents(t, result) {
			assert.Equal(t, "ManifestWork", object["kind"])
		}
	})
}
