package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// dependsOn writes the policy of an add-on that depends on another one.
func (f fixture) dependsOn(t *testing.T, other fixture, kind policies.DependencyType) *policies.AddOnPolicy {
	t.Helper()
	p := &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: f.addOn}}
	p.Spec.DependsOn = []policies.Dependency{{Name: other.addOn, Type: kind}}
	require.NoError(t, plane.Client.Create(t.Context(), p))
	return p
}

// beside enables another add-on on the cluster of one.
func (f fixture) beside(t *testing.T, addOn string, changes ...func(*addonv1beta1.ManagedClusterAddOn)) fixture {
	t.Helper()
	other := fixture{addOn: addOn, cluster: f.cluster}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: addOn + "-shared"}}
	require.NoError(t, client.IgnoreAlreadyExists(plane.Client.Create(t.Context(), namespace)))
	other.applyHosted(t)
	other.enable(t, changes...)
	return other
}

// held keeps an object as its agent or its author would, until the returned function is called.
func held(t *testing.T, o client.Object) (free func()) {
	t.Helper()
	patch := func(finalizers string) {
		require.NoError(t, plane.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":`+finalizers+`}}`))))
	}
	patch(`["example.com/held"]`)
	return func() { patch(`null`) }
}

// goes waits until the add-on is gone.
func (f fixture) goes(t *testing.T) { t.Helper(); f.goneWithin(t, collection) }

// Shows: policies/depends-removal
func TestADependencyGoesAfterWhatDependsOnIt(t *testing.T) {
	t.Parallel()
	network := install(t, "ordered-network")
	gateway := network.beside(t, "ordered-gateway")
	gateway.dependsOn(t, network, policies.DependencyRequired)
	network.finalizers(t, names.FinalizerDependents)
	network.work(t, nil)
	network.report(t, 1)
	work := gateway.work(t, nil)
	free := held(t, work)

	network.delete(t)
	network.deleting(t, "WaitingForDependents", "go", gateway.addOn)
	gateway.delete(t)
	gateway.goes(t)
	network.deleting(t, "WaitingForDependents", gateway.addOn+" (1 ManifestWorks are left)")
	network.work(t, func(w *workv1.ManifestWork) bool { return w.DeletionTimestamp == nil })
	free()
	network.goes(t)
	assert.True(t, gone(t.Context(), work))
}

// Shows: policies/depends-removal-hosted
func TestTheOrderOfHostedAddOns(t *testing.T) {
	t.Parallel()
	host(t, "ordered-host")
	network := installHosted(t, "ordered-hosted-network", "ordered-host", hook("Job", "clean", mark))
	gateway := network.beside(t, "ordered-hosted-gateway", func(a *addonv1beta1.ManagedClusterAddOn) {
		a.Annotations = map[string]string{hostingAnnotation: "ordered-host"}
	})
	gateway.dependsOn(t, network, policies.DependencyRequired)
	holds(t, network.hostedKey("ordered-host"), hosted)
	network.finalizers(t, objectsFinalizer, hookFinalizer, names.FinalizerDependents)
	network.delete(t)
	network.deleting(t, "WaitingForDependents", gateway.addOn)
	holds(t, network.hostedKey("ordered-host"), hosted)
	_, found := content(t.Context(), network.hookKey())
	assert.False(t, found, "the hook begins after those that depend on it")
	gateway.delete(t)
	network.deleting(t, "WaitingForHook")
	assert.Nil(t, gateway.get(t.Context()))
	holds(t, network.hostedKey("ordered-host"), hosted)
	reports(t, network.hookKey(), job(network, "clean"), map[string]any{"JobComplete": "True"})
	network.goes(t)
	holds(t, network.hostedKey("ordered-host"), "")
}

// An add-on whose ClusterManagementAddOn is gone is deleted by Kubernetes.
//
// Shows: policies/depends-removal-orphaned
func TestTheOrderOfAddOnsWithoutADefinition(t *testing.T) {
	t.Parallel()
	network := install(t, "orphaned-network")
	gateway := network.beside(t, "orphaned-gateway")
	gateway.dependsOn(t, network, policies.DependencyRequired)
	network.finalizers(t, names.FinalizerDependents)
	network.work(t, nil)
	for _, f := range []fixture{network, gateway} { // Both go, and the first one waits for the other.
		free := held(t, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: f.cluster, Name: gateway.addOn}})
		require.NoError(t, plane.Client.Delete(t.Context(), &addonv1alpha1.ClusterManagementAddOn{
			ObjectMeta: metav1.ObjectMeta{Name: f.addOn},
		}))
		suite.Eventually(t, suite.True("the add-on must be deleted", func() bool {
			addOn := f.get(t.Context())
			return addOn != nil && addOn.DeletionTimestamp != nil
		}))
		network.deleting(t, "WaitingForDependents", gateway.addOn)
		network.work(t, func(w *workv1.ManifestWork) bool { return w.DeletionTimestamp == nil })
		free()
	}
	gateway.goes(t)
	network.goes(t)
}

// Shows: policies/depends-removal-cluster
func TestTheRemovalOfAClusterKeepsTheOrderAndWaitsForNobodyElse(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]bool{"leaving": false, "leaving-later": true} {
		network := install(t, name+"-network")
		gateway := network.beside(t, name+"-gateway", func(a *addonv1beta1.ManagedClusterAddOn) {
			if later { // It goes with the cluster when all others are gone.
				a.Annotations = map[string]string{clusterv1.CleanupPriorityAnnotationKey: "50"}
			}
		})
		gateway.dependsOn(t, network, policies.DependencyRequired)
		network.finalizers(t, names.FinalizerDependents)
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: network.cluster}}
		held(t, cluster)
		require.NoError(t, plane.Client.Delete(t.Context(), cluster))
		network.delete(t)
		if !later {
			network.deleting(t, "WaitingForDependents", gateway.addOn)
			gateway.delete(t)
		}
		network.goes(t)
		assert.Equal(t, later, gateway.get(t.Context()) != nil)
	}
}

// Shows: policies/depends-removal-optional
func TestWhatDoesWithoutADependencyHoldsItWhileItGoes(t *testing.T) {
	t.Parallel()
	network := install(t, "optional-network")
	gateway := network.beside(t, "optional-gateway")
	gateway.dependsOn(t, network, policies.DependencyOptional)
	network.finalizers(t, names.FinalizerDependents)
	free := held(t, &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: gateway.cluster, Name: gateway.addOn},
	})
	gateway.delete(t)
	network.delete(t)
	network.deleting(t, "WaitingForDependents", gateway.addOn)
	free()
	network.goes(t)

	network.enable(t)
	again := network.beside(t, gateway.addOn)
	network.finalizers(t, names.FinalizerDependents)
	network.delete(t)
	network.goes(t)
	assert.NotNil(t, again.get(t.Context()), "it does without")
}

// Shows: policies/depends-removal-policy
func TestWithoutThePolicyOrInACycleNothingIsOrdered(t *testing.T) {
	t.Parallel()
	network := install(t, "free-network")
	gateway := network.beside(t, "free-gateway")
	policy := gateway.dependsOn(t, network, policies.DependencyRequired)
	network.finalizers(t, names.FinalizerDependents)
	back := network.dependsOn(t, gateway, policies.DependencyRequired)
	network.finalizers(t)
	require.NoError(t, plane.Client.Delete(t.Context(), back))
	network.finalizers(t, names.FinalizerDependents)
	network.delete(t)
	network.deleting(t, "WaitingForDependents", gateway.addOn)
	require.NoError(t, plane.Client.Delete(t.Context(), policy))
	network.goes(t)
	assert.NotNil(t, gateway.get(t.Context()))
}

// Shows: policies/depends-removal-others
func TestAnAddOnThatItsAuthorMakesGoesInItsOrder(t *testing.T) {
	t.Parallel()
	network := fixture{addOn: "foreign-network", cluster: "foreign-network-cluster"}
	network.prepare(t)
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: network.addOn}}
	definition.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyManual
	require.NoError(t, plane.Client.Create(t.Context(), definition))
	network.enable(t)
	gateway := network.beside(t, "foreign-gateway")
	gateway.dependsOn(t, network, policies.DependencyRequired)
	network.finalizers(t, names.FinalizerDependents)
	network.delete(t)
	network.deleting(t, "WaitingForDependents", gateway.addOn)
	require.Nil(t, meta.FindStatusCondition(network.get(t.Context()).Status.Conditions, "HookManifestCompleted"))
	gateway.delete(t)
	network.goes(t)
}
