package attacks_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// hostedOn enables an add-on of movedFile under another name, on two clusters that a third one hosts, and returns how
// to look for the work on the host.
func hostedOn(t *testing.T, addOn, host string, clusters ...string) (work func(cluster string) error) {
	t.Helper()
	file := bytes.ReplaceAll([]byte(movedFile), []byte("moved"), []byte(addOn))
	require.NoError(t, shared.plane.Apply(t.Context(), file))
	require.NoError(t, shared.join(t.Context(), host, who("the agent of "+host)))
	require.NoError(t, change(newCluster(host), `{"metadata":{"annotations":{"`+annotationHosts+`":"*"}}}`)(t.Context(), shared.admin))
	work = func(cluster string) error {
		key := client.ObjectKey{Namespace: host, Name: "addon-" + addOn + "-deploy-hosting-" + cluster + "-0"}
		return shared.admin.Get(t.Context(), key, &workv1.ManifestWork{})
	}
	for _, cluster := range clusters {
		require.NoError(t, shared.join(t.Context(), cluster, who("the agent of "+cluster)))
		own := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: withAnnotation(in(cluster, addOn), annotationHost, host)}
		suite.Eventually(t, func() error { return client.IgnoreAlreadyExists(shared.admin.Create(t.Context(), own.DeepCopy())) })
		suite.Eventually(t, func() error { return work(cluster) })
		suite.Eventually(t, func() error {
			var own addonv1alpha1.ManagedClusterAddOn
			if err := shared.admin.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: addOn}, &own); err != nil {
				return err
			}
			if len(own.Finalizers) == 0 || len(own.Status.SupportedConfigs) == 0 {
				return fmt.Errorf("not ready: %v %v", own.Finalizers, own.Status.SupportedConfigs)
			}
			return nil
		})
	}
	return work
}

// The owner deletes the add-on. Its agent writes the status all the time: what it has on the host stays.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentKeepsNothingOnItsHostByWritingAnAddOnThatIsDeleted(t *testing.T) {
	work := hostedOn(t, "wdel", "wdel-host", "wdel-evil", "wdel-honest")
	stop := writesAddOn(t, "wdel-evil", "wdel")
	for _, cluster := range []string{"wdel-honest", "wdel-evil"} {
		require.NoError(t, shared.admin.Delete(t.Context(), &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(cluster, "wdel")}))
	}
	for _, cluster := range []string{"wdel-honest", "wdel-evil"} {
		suite.Eventually(t, suite.True("the work on the host for "+cluster+" goes", func() bool { return apierrors.IsNotFound(work(cluster)) }))
	}
	stop()
}

// The administrator moves the add-on to another host: what it has on the first one must go.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentKeepsNothingOnItsFormerHost(t *testing.T) {
	work := hostedOn(t, "wmov", "wmov-host", "wmov-evil", "wmov-honest")
	const next = "wmov-next"
	require.NoError(t, shared.join(t.Context(), next, who("the agent of "+next)))
	require.NoError(t, change(newCluster(next), `{"metadata":{"annotations":{"`+annotationHosts+`":"*"}}}`)(t.Context(), shared.admin))
	stop := writesAddOn(t, "wmov-evil", "wmov")
	for _, cluster := range []string{"wmov-honest", "wmov-evil"} {
		require.NoError(t, change(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in(cluster, "wmov")},
			`{"metadata":{"annotations":{"`+annotationHost+`":"`+next+`"}}}`)(t.Context(), shared.admin))
	}
	for _, cluster := range []string{"wmov-honest", "wmov-evil"} {
		suite.Eventually(t, suite.True("the work on the host for "+cluster+" goes", func() bool { return apierrors.IsNotFound(work(cluster)) }))
	}
	stop()
}

// In a rollout, the object for the host is taken from the template. The agent writes the status of its add-on.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentKeepsNothingOnItsHostInARollout(t *testing.T) {
	const addOn = "wroll"
	paced(t, addOn+"place", addOn)
	work := hostedOn(t, addOn, addOn+"-host", addOn+"-evil", addOn+"-honest")
	for _, cluster := range []string{addOn + "-evil", addOn + "-honest"} {
		require.NoError(t, change(newCluster(cluster), `{"metadata":{"labels":{"paced":"`+addOn+`"}}}`)(t.Context(), shared.admin))
	}
	require.NoError(t, change(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", addOn)},
		`{"spec":{"installStrategy":{"type":"Placements","placements":[{"name":"paced","namespace":"`+addOn+`place","rolloutStrategy":{"type":"Progressive",`+
			`"progressive":{"maxConcurrency":"100%","maxFailures":"100%"}}}]}}}`)(t.Context(), shared.admin))
	for _, cluster := range []string{addOn + "-evil", addOn + "-honest"} {
		suite.Eventually(t, suite.True("the placement owns the add-on on "+cluster, func() bool {
			var own addonv1alpha1.ManagedClusterAddOn
			err := shared.admin.Get(t.Context(), client.ObjectKey{Namespace: cluster, Name: addOn}, &own)
			return err == nil && meta.IsStatusConditionTrue(own.Status.Conditions, addonv1alpha1.ManagedClusterAddOnConditionConfigured)
		}))
	}
	stop := writesAddOn(t, addOn+"-evil", addOn)
	require.NoError(t, change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", addOn)},
		`{"spec":{"agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap",`+
			`"metadata":{"name":"stays","namespace":"default"}}]}}}}`)(t.Context(), shared.admin))
	for _, cluster := range []string{addOn + "-honest", addOn + "-evil"} {
		suite.Eventually(t, suite.True("the work on the host for "+cluster+" goes", func() bool { return apierrors.IsNotFound(work(cluster)) }))
	}
	stop()
}

// The owner deletes the cluster with its hosted add-on, and denies it. The agent writes the add-on all the time.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentOfADeniedClusterKeepsNothingOnItsHost(t *testing.T) {
	work := hostedOn(t, "wboth", "wboth-host", "wboth-evil")
	stop := writesAddOn(t, "wboth-evil", "wboth")
	require.NoError(t, shared.admin.Delete(t.Context(), newCluster("wboth-evil")))
	require.NoError(t, client.IgnoreNotFound(shared.accept(t.Context(), "wboth-evil", false)))
	suite.Eventually(t, suite.True("the work on the host goes", func() bool { return apierrors.IsNotFound(work("wboth-evil")) }))
	stop()
}

const harmlessFile = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ADDON-harmless}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bind-ADDON-harmless}
rules:
- {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [ADDON-harmless], verbs: [bind]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bind-ADDON-harmless}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bind-ADDON-harmless}
subjects:
- {kind: ServiceAccount, name: addon-manager-controller-sa, namespace: open-cluster-management-hub}
`

// In a rollout, the template asks for another role in place of the one that reads Secrets.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentKeepsNoRoleThatItsTemplateReplaced(t *testing.T) {
	const addOn, bad, good = "wrole", "wrole-evil", "wrole-honest"
	joins(t, addOn, bad, good)
	paced(t, addOn+"place", addOn)
	defineAccess(t, addOn)
	require.NoError(t, shared.plane.Apply(t.Context(), bytes.ReplaceAll([]byte(harmlessFile), []byte("ADDON"), []byte(addOn))))
	rollsOut(t, addOn)
	evil, honest := credentialOf(t, bad, addOn), credentialOf(t, good, addOn)
	reads(t, evil, bad, addOn+"-shared")
	reads(t, honest, good, addOn+"-shared")
	stop := writesAddOn(t, bad, addOn)
	require.NoError(t, change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", addOn)},
		`{"spec":{"registration":[{"type":"KubeClient","kubeClient":{"hubPermissions":[`+
			`{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"`+addOn+`-harmless"}},`+
			`{"type":"SingleNamespace","singleNamespace":{"namespace":"`+addOn+`-shared","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"`+addOn+`-harmless"}}}]}}]}}`)(t.Context(), shared.admin))
	readsNothing(t, honest, good, addOn+"-shared")
	readsNothing(t, evil, bad, addOn+"-shared")
	stop()
}

// A role for the agents of all clusters, as OCM binds it, goes though the agent of one cluster writes its add-on in a rollout.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentKeepsNoRoleForTheAgentsOfAllClusters(t *testing.T) {
	const addOn, bad = "wall", "wall-evil"
	joins(t, addOn, bad)
	paced(t, addOn+"place", addOn)
	defineAccess(t, addOn)
	rollsOut(t, addOn)
	evil, outsider := credentialOf(t, bad, addOn), credentialOf(t, addOn+"-none", addOn)
	reads(t, evil, bad, addOn+"-shared")
	stop := writesAddOn(t, bad, addOn)
	require.NoError(t, change(&addonv1alpha1.AddOnTemplate{ObjectMeta: in("", addOn)},
		`{"spec":{"agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"second","namespace":"default"}}]}}}}`)(t.Context(), shared.admin))
	require.NoError(t, shared.admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: addOn + "-shared", Name: "open-cluster-management:" + addOn + ":clusterrole:agent",
			Labels: map[string]string{names.LabelAddonName: addOn, names.LabelAddonTemplate: ""},
		},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: csr.AddonGroups("", addOn)[1]}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: addOn + "-secrets"},
	}))
	readsNothing(t, outsider, addOn+"-shared")
	stop()
}

// A Placement drops three clusters. The agent of one writes the status of its cluster all the time, and that of another
// one the status of its add-on: their add-ons stay, with what these may do on the hub.
//
// Shows: hub/taken-whatever-the-agent-writes
func TestAnAgentKeepsNoAddOnThatNoPlacementSelects(t *testing.T) {
	const addOn, evil, writer, honest = "wdrop", "wdrop-evil", "wdrop-writer", "wdrop-honest"
	joins(t, addOn, evil, writer, honest)
	paced(t, addOn, addOn)
	of := func(cluster string) error {
		key := client.ObjectKey{Namespace: cluster, Name: addOn}
		return shared.admin.Get(t.Context(), key, &addonv1alpha1.ManagedClusterAddOn{})
	}
	for _, cluster := range []string{evil, writer, honest} {
		suite.Eventually(t, func() error { return of(cluster) })
	}
	stop := report(t, evil)
	quiet := writesAddOn(t, writer, addOn)
	for _, cluster := range []string{honest, writer, evil} {
		require.NoError(t, change(newCluster(cluster), `{"metadata":{"labels":{"paced":"none"}}}`)(t.Context(), shared.admin))
	}
	for _, cluster := range []string{honest, writer, evil} {
		suite.Eventually(t, suite.True("the add-on on "+cluster+" goes", func() bool { return apierrors.IsNotFound(of(cluster)) }))
	}
	stop()
	quiet()
}
