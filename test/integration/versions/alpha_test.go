package versions_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
)

// alphaOnly are a cluster and an add-on whose agent gets a role in the namespace of the cluster.
const alphaOnly = `
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: alpha-only}
spec: {hubAcceptsClient: true}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: alpha-only, labels: {addon.spokelet.io/hub-permission: "true"}}
rules:
  - {apiGroups: [""], resources: [configmaps], verbs: [get]}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: alpha-only}
spec:
  addonName: alpha-only
  agentSpec:
    workload:
      manifests:
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: hello, namespace: default}}
  registration:
    - type: KubeClient
      kubeClient:
        hubPermissions:
          - {type: CurrentCluster, currentCluster: {clusterRoleName: alpha-only}}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: alpha-only}
spec:
  supportedConfigs:
    - group: addon.open-cluster-management.io
      resource: addontemplates
      defaultConfig: {name: alpha-only}
`

// Where v1beta1 is not served, Kubernetes finds no owner in that version, so it collects nothing that has one.
//
// Shows: hub/one-version
func TestTheRolesOfAnAddOnGoWithItOnAHubWithV1alpha1Alone(t *testing.T) {
	left := removedOnAlphaAlone(t)
	eventually(t, func() bool { return left("rbac.authorization.k8s.io", "v1", "RoleBinding") == 0 },
		"the agent of an add-on that is gone keeps its role on the hub")
}

// As for its roles.
//
// Shows: hub/one-version
func TestTheWorksOfAnAddOnGoWithItOnAHubWithV1alpha1Alone(t *testing.T) {
	left := removedOnAlphaAlone(t)
	eventually(t, func() bool { return left("work.open-cluster-management.io", "v1", "ManifestWork") == 0 },
		"what an add-on that is gone deployed stays on its cluster")
}

// removedOnAlphaAlone deploys an add-on on a hub with v1alpha1 alone and removes it. It returns how many objects of a
// kind that name the add-on are left.
func removedOnAlphaAlone(t *testing.T) func(group, version, kind string) int {
	t.Helper()
	onAlphaAlone(t)
	startHub(t)
	for _, doc := range strings.Split(alphaOnly, "---\n") {
		eventually(t, func() bool { return shared.plane.Apply(t.Context(), []byte(doc)) == nil }, "the objects are written")
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	eventually(t, func() bool {
		return shared.admin.Get(t.Context(), types.NamespacedName{Name: "alpha-only"}, namespace) == nil
	}, "the cluster has a namespace")
	of := addon("v1alpha1")
	of.SetNamespace("alpha-only")
	of.SetName("alpha-only")
	of.Object["spec"] = map[string]any{}
	require.NoError(t, shared.admin.Create(t.Context(), of))

	left := func(group, version, kind string) int {
		list := listOf(group, version, kind)
		if err := shared.admin.List(t.Context(), list, client.InNamespace("alpha-only"),
			client.MatchingLabels{"open-cluster-management.io/addon-name": "alpha-only"}); err != nil {
			return -1
		}
		return len(list.Items)
	}
	eventually(t, func() bool {
		return left("rbac.authorization.k8s.io", "v1", "RoleBinding") == 1 &&
			left("work.open-cluster-management.io", "v1", "ManifestWork") == 1
	}, "the add-on is deployed and its agent has its role")

	require.NoError(t, shared.admin.Delete(t.Context(), of))
	eventually(t, func() bool {
		return shared.admin.Get(t.Context(), client.ObjectKeyFromObject(of), addon("v1alpha1")) != nil
	}, "the add-on is gone")
	return left
}

// onAlphaAlone makes the tests run on a hub that never served v1beta1, as one of OCM before it had that.
func onAlphaAlone(t *testing.T) {
	t.Helper()
	plane, err := sandbox.Start(t.Context(), sandbox.Options{Name: "alpha"})
	require.NoError(t, err)
	t.Cleanup(plane.Stop)
	var crds [][]byte
	for _, raw := range manifests.CRDs() {
		crds = append(crds, withoutBeta(t, raw))
	}
	require.NoError(t, plane.Apply(t.Context(), crds...))
	require.NoError(t, plane.Apply(t.Context(), manifests.Hub()...))
	admin, err := client.New(plane.Admin(), client.Options{})
	require.NoError(t, err)
	before := shared
	t.Cleanup(func() { shared = before })
	shared.plane, shared.admin = plane, admin
}

// withoutBeta returns the definition of a kind of add-ons without its version v1beta1, and any other as it is.
func withoutBeta(t *testing.T, raw []byte) []byte {
	t.Helper()
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(raw, &crd.Object))
	if crd.GetName() != "managedclusteraddons.addon.open-cluster-management.io" &&
		crd.GetName() != "clustermanagementaddons.addon.open-cluster-management.io" {
		return raw
	}
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	require.NoError(t, err)
	for _, version := range versions {
		if one, ok := version.(map[string]any); ok && one["name"] == "v1beta1" {
			one["served"] = false
		}
	}
	require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	raw, err = yaml.Marshal(crd.Object)
	require.NoError(t, err)
	return raw
}

func listOf(group, version, kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: kind + "List"})
	return list
}
