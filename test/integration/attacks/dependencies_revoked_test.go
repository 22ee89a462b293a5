package attacks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

const revokedFile = `
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: ADDON}
spec:
  addonName: ADDON
  agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: ADDON, namespace: default}}]}}
  registration:
  - type: KubeClient
    kubeClient:
      hubPermissions: [{type: CurrentCluster, currentCluster: {clusterRoleName: hello-hub}}]
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: ADDON
  annotations: {addon.open-cluster-management.io/lifecycle: addon-manager}
spec:
  installStrategy: {type: Manual}
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: ADDON}}
`

// roleOf returns an error unless the add-on on a cluster has its role on the hub.
func roleOf(ctx context.Context, cluster, addOn string) error {
	var bindings rbacv1.RoleBindingList
	err := shared.admin.List(ctx, &bindings, client.InNamespace(cluster), client.MatchingLabels{names.LabelAddonName: addOn})
	if err == nil && len(bindings.Items) == 0 {
		err = fmt.Errorf("add-on %s on %s has no role", addOn, cluster)
	}
	return err
}

// A person deletes two add-ons of a cluster, to take their rights from its agent. By docs/security.md, "the deletion of an
// add-on" removes everything that was bound to it, but where hooks run, of which there is none here, and where an add-on is there that depends on it. The agent keeps its
// finalizer on the work of the one that depends on the other.
//
// Shows: policies/depends-removal-rights
func TestAnAgentKeepsNoRightsOfADeletedAddOnByADependency(t *testing.T) {
	for name, ordered := range map[string]bool{"without a policy": false, "with a policy": true} {
		t.Run(name, func(t *testing.T) {
			prefix := map[bool]string{false: "plain", true: "ordered"}[ordered]
			cluster, gateway, network := prefix+"-revoked", prefix+"-gateway", prefix+"-network"
			require.NoError(t, shared.join(t.Context(), cluster, who("the agent of "+cluster)))
			for _, addOn := range []string{network, gateway} {
				require.NoError(t, shared.plane.Apply(t.Context(), []byte(strings.ReplaceAll(revokedFile, "ADDON", addOn))))
				suite.Eventually(t, func() error { return shared.enable(t.Context(), client.ObjectKey{Namespace: cluster, Name: addOn}) })
				deployed(t, cluster, addOn, addOn)
				suite.Eventually(t, func() error { return roleOf(t.Context(), cluster, addOn) })
			}
			if ordered {
				require.NoError(t, shared.admin.Create(t.Context(), &policies.AddOnPolicy{
					ObjectMeta: in("", gateway), Spec: policies.AddOnPolicySpec{DependsOn: []policies.Dependency{{
						Name: network, Type: policies.DependencyOptional,
					}}},
				}))
				suite.Eventually(t, func() error {
					own := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(cluster, network)}
					err := shared.admin.Get(t.Context(), client.ObjectKeyFromObject(own), own)
					if err == nil && !slices.Contains(own.Finalizers, names.FinalizerDependents) {
						err = fmt.Errorf("the finalizers are %v", own.Finalizers)
					}
					return err
				})
			}
			agent := shared.clients[who("the agent of "+cluster)]
			work := &workv1.ManifestWork{ObjectMeta: in(cluster, "addon-"+gateway+"-deploy-0")}
			require.NoError(t, change(work, `{"metadata":{"finalizers":["cluster.open-cluster-management.io/manifest-work-cleanup"]}}`)(
				t.Context(), agent))
			for _, addOn := range []string{gateway, network} {
				require.NoError(t, shared.admin.Delete(t.Context(), &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(cluster, addOn)}))
			}
			suite.Within(t, 30*time.Second, func() error {
				for _, addOn := range []string{gateway, network} {
					if roleOf(t.Context(), cluster, addOn) == nil {
						return fmt.Errorf("add-on %s has its role still", addOn)
					}
				}
				return nil
			})
		})
	}
}
