package deploy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/test/suite"
)

// configured is the line of the file in front of which settings of the configuration are written.
const configured = "  customizedVariables:\n"

// next waits for a change of the work and returns it with the Deployment in it.
func (f fixture) next(t *testing.T, before *workv1.ManifestWork) (*workv1.ManifestWork, *unstructured.Unstructured) {
	t.Helper()
	work := f.work(t, func(w *workv1.ManifestWork) bool { return w.Generation > before.Generation })
	return work, decode(t, &work.Spec.Workload.Manifests[0])
}

// podSpec returns a field of the pods of a Deployment.
func podSpec(t *testing.T, deployment *unstructured.Unstructured, field string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldCopy(deployment.Object, "spec", "template", "spec", field)
	require.NoError(t, err)
	return value
}

// container returns a field of the first container of a Deployment.
func container(t *testing.T, deployment *unstructured.Unstructured, field string) any {
	t.Helper()
	containers, _ := podSpec(t, deployment, "containers").([]any)
	require.NotEmpty(t, containers)
	first, _ := containers[0].(map[string]any)
	return first[field]
}

// Shows: hub/configured-workloads, hub/replicas-stored
func TestSettingsOfTheConfigurationReachTheWorkAndLeaveItAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		settings string
		check    func(t *testing.T, work *workv1.ManifestWork, deployment *unstructured.Unstructured)
	}{
		"image": {
			"  registries:\n    - {source: registry.example.com, mirror: mirror.example.com/all}\n",
			func(t *testing.T, _ *workv1.ManifestWork, deployment *unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, "mirror.example.com/all/agent:v1", container(t, deployment, "image"))
			},
		},
		"nodes": {
			"  nodePlacement:\n    nodeSelector: {disk: ssd}\n    tolerations:\n      - {key: dedicated, operator: Exists}\n",
			func(t *testing.T, _ *workv1.ManifestWork, deployment *unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, map[string]any{"disk": "ssd"}, podSpec(t, deployment, "nodeSelector"))
				assert.Equal(t, []any{map[string]any{"key": "dedicated", "operator": "Exists"}}, podSpec(t, deployment, "tolerations"))
			},
		},
		"namespace": {
			"  agentInstallNamespace: elsewhere\n",
			func(t *testing.T, work *workv1.ManifestWork, deployment *unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, "elsewhere", deployment.GetNamespace())
				assert.Equal(t, "elsewhere", decode(t, &work.Spec.Workload.Manifests[1]).GetNamespace())
				assert.Equal(t, "elsewhere", work.Spec.DeleteOption.SelectivelyOrphan.OrphaningRules[0].Namespace)
			},
		},
		"proxy": {
			"  proxyConfig: {httpsProxy: \"https://proxy.example.com\", noProxy: 10.0.0.0/8, caBundle: Y2VydGlmaWNhdGU=}\n",
			func(t *testing.T, work *workv1.ManifestWork, deployment *unstructured.Unstructured) {
				t.Helper()
				assert.Contains(t, container(t, deployment, "env"), map[string]any{
					"name": "https_proxy", "value": "https://proxy.example.com",
				})
				assert.Contains(t, container(t, deployment, "env"), map[string]any{
					"name": "CA_BUNDLE_FILE_PATH", "value": "/managed/proxy-ca/ca-bundle.crt",
				})
				assert.Contains(t, podSpec(t, deployment, "volumes"), map[string]any{
					"name": "proxy-ca-bundle", "configMap": map[string]any{"name": "set-proxy-proxy-ca"},
				})
				require.Len(t, work.Spec.Workload.Manifests, 3)
				authorities := decode(t, &work.Spec.Workload.Manifests[2])
				assert.Equal(t, "open-cluster-management-agent-addon/set-proxy-proxy-ca",
					authorities.GetNamespace()+"/"+authorities.GetName())
				assert.Equal(t, map[string]any{"ca-bundle.crt": "certificate"}, authorities.Object["data"])
			},
		},
		"replicas": {
			"  replicaConfigs: [{workloadID: \"deployments:*\", replicas: 0}, {workloadID: \"deployments:*\", replicas: 4}]\n",
			func(t *testing.T, _ *workv1.ManifestWork, deployment *unstructured.Unstructured) {
				t.Helper()
				replicas, _, err := unstructured.NestedFieldNoCopy(deployment.Object, "spec", "replicas")
				require.NoError(t, err)
				assert.EqualValues(t, 4, replicas)
			},
		},
		"resources": {
			"  resourceRequirements:\n    - {containerID: \"deployments:*:agent\", resources: {limits: {memory: 64Mi}}}\n",
			func(t *testing.T, _ *workv1.ManifestWork, deployment *unstructured.Unstructured) {
				t.Helper()
				assert.Equal(t, map[string]any{"limits": map[string]any{"memory": "64Mi"}}, container(t, deployment, "resources"))
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := install(t, "set-"+name)
			before := f.work(t, nil)
			f.apply(t, configured, test.settings+configured)
			work, deployment := f.next(t, before)
			test.check(t, work, deployment)

			f.apply(t)
			back, _ := f.next(t, work)
			assert.Equal(t, before.Spec, back.Spec)
		})
	}
}

// Shows: hub/configured-workloads
func TestImagesComeFromTheMirrorsOfTheClusterUnlessTheConfigurationHasItsOwn(t *testing.T) {
	t.Parallel()
	f := install(t, "mirrored")
	before := f.work(t, nil)
	f.annotateCluster(t, `"{\"registries\":[{\"source\":\"registry.example.com\",\"mirror\":\"cluster.example.com\"}]}"`)
	work, deployment := f.next(t, before)
	assert.Equal(t, "cluster.example.com/agent:v1", container(t, deployment, "image"))

	f.apply(t, configured, "  registries:\n    - {source: registry.example.com, mirror: config.example.com}\n"+configured)
	work, deployment = f.next(t, work)
	assert.Equal(t, "config.example.com/agent:v1", container(t, deployment, "image"))

	f.apply(t)
	work, deployment = f.next(t, work)
	assert.Equal(t, "cluster.example.com/agent:v1", container(t, deployment, "image"))
	f.annotateCluster(t, "null")
	_, deployment = f.next(t, work)
	assert.Equal(t, "registry.example.com/agent:v1", container(t, deployment, "image"))
}

// annotateCluster sets the image mirrors of the cluster, as JSON.
func (f fixture) annotateCluster(t *testing.T, registries string) {
	t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"open-cluster-management.io/image-registries":` + registries + `}}}`)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster}}
	require.NoError(t, plane.Client.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json", patch)))
}

// Shows: hub/per-cluster
func TestAClusterWithAConfigurationOfItsOwnGetsItsOwnValues(t *testing.T) {
	t.Parallel()
	f := install(t, "own-values")
	before := f.work(t, nil)
	assert.Equal(t, "--v=2", argument(t, before, 1))
	require.NoError(t, plane.Apply(t.Context(), []byte(`
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: config, namespace: own-values-cluster}
spec:
  customizedVariables:
    - {name: LOG_LEVEL, value: "9"}
`)))
	f.configure(t, `[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs",`+
		`"namespace":"own-values-cluster","name":"config"}]`)
	work := f.work(t, func(w *workv1.ManifestWork) bool { return w.Generation > before.Generation })
	assert.Equal(t, "--v=9", argument(t, work, 1))
	f.configure(t, `null`)
	back := f.work(t, func(w *workv1.ManifestWork) bool { return w.Generation > work.Generation })
	assert.Equal(t, before.Spec, back.Spec)
}

// Of two configurations of one kind the last one counts, also when they change places.
//
// Shows: hub/config-precedence, hub/config-order
func TestTheLastOfSeveralConfigurationsCountsAlsoInAnotherOrder(t *testing.T) {
	t.Parallel()
	f := install(t, "several")
	before := f.work(t, nil)
	require.NoError(t, plane.Apply(t.Context(), []byte(`
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: other, namespace: several-shared}
spec:
  customizedVariables:
    - {name: LOG_LEVEL, value: "9"}
`)))
	named := func(name string) string {
		return `{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs",` +
			`"namespace":"several-shared","name":"` + name + `"}`
	}
	f.configure(t, "["+named("config")+","+named("other")+"]")
	work := f.work(t, func(w *workv1.ManifestWork) bool { return w.Generation > before.Generation })
	assert.Equal(t, "--v=9", argument(t, work, 1))
	f.configure(t, "["+named("other")+","+named("config")+"]")
	back := f.work(t, func(w *workv1.ManifestWork) bool { return w.Generation > work.Generation })
	assert.Equal(t, "--v=2", argument(t, back, 1))
	assert.NotEmpty(t, works.OrderOf(work), "the order is known of a work that an API server stored")
	assert.NotEmpty(t, works.OrderOf(back))
	assert.NotEqual(t, works.OrderOf(work), works.OrderOf(back))
	suite.Eventually(t, func() error {
		references := f.get(t.Context()).Status.ConfigReferences
		if len(references) != 3 || references[0].DesiredConfig.Name != "other" || references[1].DesiredConfig.Name != "config" {
			return fmt.Errorf("the references are %+v", references)
		}
		return nil
	})
}

// configure sets the configurations of the add-on on its cluster, as JSON.
func (f fixture) configure(t *testing.T, configs string) {
	t.Helper()
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: f.addOn}}
	patch := []byte(`{"spec":{"configs":` + configs + `}}`)
	require.NoError(t, plane.Client.Patch(t.Context(), addOn, client.RawPatch("application/merge-patch+json", patch)))
}

// Shows: hub/options-moved
func TestTheWorkHasTheOptionsOfTheClustersOwnTemplate(t *testing.T) {
	t.Parallel()
	f := install(t, "options", "    workload:\n", `    manifestConfigs:
      - resourceIdentifier:
          {group: apps, resource: deployments, namespace: open-cluster-management-agent-addon, name: agent}
        feedbackRules:
          - {type: JSONPaths, jsonPaths: [{name: paused, path: .spec.paused}]}
        updateStrategy: {type: ServerSideApply}
    workload:
`, configured, "  agentInstallNamespace: elsewhere\n"+configured)
	work := f.work(t, nil)
	require.Len(t, work.Spec.ManifestConfigs, 1, "the health probe and the author look at one Deployment")
	option := work.Spec.ManifestConfigs[0]
	assert.Equal(t, workv1.ResourceIdentifier{
		Group: "apps", Resource: "deployments", Namespace: "elsewhere", Name: "agent",
	}, option.ResourceIdentifier)
	require.Len(t, option.FeedbackRules, 2)
	assert.Equal(t, workv1.WellKnownStatusType, option.FeedbackRules[0].Type)
	assert.Contains(t, option.FeedbackRules[1].JsonPaths, workv1.JsonPath{Name: "paused", Path: ".spec.paused"})
	require.NotNil(t, option.UpdateStrategy)
	assert.Equal(t, workv1.UpdateStrategyTypeServerSideApply, option.UpdateStrategy.Type)
}
