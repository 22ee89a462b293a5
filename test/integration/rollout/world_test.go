package rollout_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"

	"github.com/spokelet/spokelet/test/suite"
)

// deploymentConfig is the name of the AddOnDeploymentConfig of every test.
const deploymentConfig = "d"

// world holds what one test owns: an add-on, a namespace for its configs and placements, and clusters.
type world struct {
	*testing.T
	addon     string
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t}
	w.namespace = w.newNamespace()
	w.addon = w.namespace
	return w
}

func (w *world) newNamespace() string {
	w.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "rollout-"}}
	require.NoError(w, plane.Client.Create(w.Context(), namespace))
	return namespace.Name
}

// clusters makes n clusters that the hub accepts, with their namespaces, and returns their names.
func (w *world) clusters(n int) []string {
	w.Helper()
	var clusters []string
	for range n {
		name := w.newNamespace()
		label := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, names.LabelClusterName, name)
		require.NoError(w, plane.Client.Patch(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
			client.RawPatch(types.MergePatchType, []byte(label))))
		w.create(&clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		})
		clusters = append(clusters, name)
	}
	return clusters
}

func (w *world) create(objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		require.NoError(w, plane.Client.Create(w.Context(), object))
		w.heard(object)
	}
}

// heard waits until the rollout knows how an object says that changes are rolled out, where it is one that does. It
// hears of each kind by itself, so that a change of a template that follows could come before.
func (w *world) heard(object client.Object) {
	w.Helper()
	suite.Eventually(w, func() error {
		var known client.Object
		var err error
		switch object.(type) {
		case *addonv1alpha1.ClusterManagementAddOn:
			known, err = cached.Load().GetClusterManagementAddOn(w.Context(), object.GetName())
		case *policies.AddOnPolicy:
			known = &policies.AddOnPolicy{}
			err = cached.Load().Client.Get(w.Context(), client.ObjectKeyFromObject(object), known)
		default:
			return nil
		}
		if err == nil && known.GetGeneration() < object.GetGeneration() {
			err = fmt.Errorf("generation %d is known, %d is there", known.GetGeneration(), object.GetGeneration())
		}
		return err
	})
}

// template is an AddOnTemplate of the test with one ConfigMap of the content.
func (w *world) template(name, content string) *addonv1alpha1.AddOnTemplate {
	object := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":%q}}`, content)
	return &addonv1alpha1.AddOnTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: w.addon + "-" + name},
		Spec: addonv1alpha1.AddOnTemplateSpec{
			AddonName: w.addon,
			AgentSpec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{
				Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(object)}}},
			}},
		},
	}
}

// deploymentConfig is the AddOnDeploymentConfig of the test.
func (w *world) deploymentConfig() *addonv1alpha1.AddOnDeploymentConfig {
	return &addonv1alpha1.AddOnDeploymentConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: deploymentConfig},
		Spec: addonv1alpha1.AddOnDeploymentConfigSpec{
			CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "V", Value: "1"}},
		},
	}
}

func (w *world) usesTemplate(name string) addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource(confighash.Template()),
		ConfigReferent:      addonv1alpha1.ConfigReferent{Name: w.addon + "-" + name},
	}
}

func (w *world) usesDeploymentConfig() addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource(confighash.DeploymentConfig()),
		ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: w.namespace, Name: deploymentConfig},
	}
}

// management is the ClusterManagementAddOn of the test with defaults and placements.
func (w *world) management(
	defaults []addonv1alpha1.AddOnConfig, placements ...addonv1alpha1.PlacementStrategy,
) *addonv1alpha1.ClusterManagementAddOn {
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: w.addon}}
	for i := range defaults {
		cma.Spec.SupportedConfigs = append(cma.Spec.SupportedConfigs, addonv1alpha1.ConfigMeta{
			ConfigGroupResource: defaults[i].ConfigGroupResource, DefaultConfig: &defaults[i].ConfigReferent,
		})
	}
	cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyManual
	if len(placements) > 0 {
		cma.Spec.InstallStrategy.Type = addonv1alpha1.AddonInstallStrategyPlacements
		cma.Spec.InstallStrategy.Placements = placements
	}
	return cma
}

func (w *world) strategy(placement string, configs ...addonv1alpha1.AddOnConfig) addonv1alpha1.PlacementStrategy {
	return addonv1alpha1.PlacementStrategy{
		PlacementRef: addonv1alpha1.PlacementRef{Namespace: w.namespace, Name: placement}, Configs: configs,
	}
}

// selects plays the placement controller: the placement exists and selects the clusters.
func (w *world) selects(placement string, clusters ...string) {
	w.Helper()
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: placement + "-decision-1", Labels: map[string]string{
			names.LabelPlacement: placement, names.LabelDecisionGroupIndex: "0", names.LabelDecisionGroupName: "",
		},
	}}
	w.create(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: placement}}, decision)
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{}
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	require.NoError(w, plane.Client.Status().Update(w.Context(), decision))
}

// reselects plays the placement controller, with its status: the placement selects other clusters, or none.
func (w *world) reselects(name string, clusters ...string) {
	w.Helper()
	decision, placement := &clusterv1beta1.PlacementDecision{}, &clusterv1beta1.Placement{}
	key := client.ObjectKey{Namespace: w.namespace, Name: name + "-decision-1"}
	require.NoError(w, plane.Client.Get(w.Context(), key, decision))
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{}
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	require.NoError(w, plane.Client.Status().Update(w.Context(), decision))
	require.NoError(w, plane.Client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, placement))
	placement.Status.NumberOfSelectedClusters = int32(len(clusters))
	meta.SetStatusCondition(&placement.Status.Conditions, metav1.Condition{
		Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue, Reason: "AllDecisionsScheduled",
	})
	require.NoError(w, plane.Client.Status().Update(w.Context(), placement))
}

// installs plays the installer.
func (w *world) installs(clusters ...string) {
	w.Helper()
	for _, cluster := range clusters {
		w.create(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: w.addon}})
	}
}

// update changes an object until no other writer is faster.
func update[T client.Object](w *world, object T, change func(T)) {
	w.Helper()
	require.NoError(w, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := plane.Client.Get(w.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return plane.Client.Update(w.Context(), object)
	}))
	w.heard(object)
}

func (w *world) updateManagement(change func(*addonv1alpha1.ClusterManagementAddOn)) {
	w.Helper()
	update(w, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: w.addon}}, change)
}

// deploys plays the deployer and the spoke: the add-on's work is made from its present configuration, applied and
// available. The work stands already when the rollout looks.
func (w *world) deploys(clusters ...string) {
	w.Helper()
	w.deploysAs(metav1.ConditionTrue, clusters...)
}

// deploysAs plays them, and the spoke says of the work whether it is available.
func (w *world) deploysAs(available metav1.ConditionStatus, clusters ...string) {
	w.Helper()
	for _, cluster := range clusters {
		addon := w.addOn(cluster)
		hashes, err := json.Marshal(confighash.Map(addon.Status.ConfigReferences))
		require.NoError(w, err)
		work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "addon-" + w.addon + "-deploy-0"}}
		err = plane.Client.Get(w.Context(), client.ObjectKeyFromObject(work), work)
		work.Labels = map[string]string{names.LabelAddonName: w.addon}
		work.Annotations = map[string]string{names.AnnotationConfigSpecHash: string(hashes)}
		object := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":%q}}`, hashes)
		work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(object)}}}
		if apierrors.IsNotFound(err) {
			w.create(work)
		} else {
			require.NoError(w, err)
			require.NoError(w, plane.Client.Update(w.Context(), work))
		}
		for kind, status := range map[string]metav1.ConditionStatus{
			workv1.WorkApplied: metav1.ConditionTrue, workv1.WorkAvailable: available,
		} {
			meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
				Type: kind, Status: status, Reason: "Because", ObservedGeneration: work.Generation,
			})
		}
		require.NoError(w, plane.Client.Status().Update(w.Context(), work))
		w.reportsApplied(cluster)
	}
}

// reportsApplied plays the deployer: the condition ManifestApplied is there.
func (w *world) reportsApplied(cluster string) {
	w.Helper()
	require.NoError(w, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		addon := w.addOn(cluster)
		after := addon.DeepCopy()
		meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
			Type: "ManifestApplied", Status: metav1.ConditionTrue, Reason: "AddonManifestApplied",
		})
		_, err := plane.AddOns.PatchAddOnStatus(w.Context(), addon, after)
		return err
	}))
}

func (w *world) addOn(cluster string) *addonv1beta1.ManagedClusterAddOn {
	w.Helper()
	addon, err := plane.AddOns.GetAddOn(w.Context(), client.ObjectKey{Namespace: cluster, Name: w.addon})
	require.NoError(w, err)
	return addon
}

// hash is the spec hash of a config as it stands on the server.
func (w *world) hash(config addonv1alpha1.AddOnConfig) string {
	w.Helper()
	object, known := confighash.New(addonv1beta1.ConfigGroupResource(config.ConfigGroupResource))
	require.True(w, known)
	require.NoError(w, plane.Client.Get(w.Context(), client.ObjectKey{Namespace: config.Namespace, Name: config.Name}, object))
	hash, err := confighash.SpecHash(object)
	require.NoError(w, err)
	return hash
}

// eventually waits until the add-on on a cluster is as check wants.
func (w *world) eventually(cluster string, check func(assert.TestingT, *addonv1beta1.ManagedClusterAddOn)) {
	w.Helper()
	suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
		addon, err := plane.AddOns.GetAddOn(w.Context(), client.ObjectKey{Namespace: cluster, Name: w.addon})
		if assert.NoError(c, err) {
			check(c, addon)
		}
	}))
}

// eventuallyManagement waits until the ClusterManagementAddOn is as check wants.
func (w *world) eventuallyManagement(check func(assert.TestingT, *addonv1beta1.ClusterManagementAddOn)) {
	w.Helper()
	suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
		management, err := plane.AddOns.GetClusterManagementAddOn(w.Context(), w.addon)
		if assert.NoError(c, err) {
			check(c, management)
		}
	}))
}

// eventuallyDesires waits until the add-on on a cluster is configured with exactly the configs as they stand.
func (w *world) eventuallyDesires(cluster string, configs ...addonv1alpha1.AddOnConfig) {
	w.Helper()
	want := map[string]string{}
	for _, config := range configs {
		key := confighash.Key(addonv1beta1.ConfigGroupResource(config.ConfigGroupResource),
			addonv1beta1.ConfigReferent(config.ConfigReferent))
		want[key] = w.hash(config)
	}
	w.eventually(cluster, func(c assert.TestingT, addon *addonv1beta1.ManagedClusterAddOn) {
		assert.Equal(c, want, confighash.Map(addon.Status.ConfigReferences))
		assert.True(c, meta.IsStatusConditionTrue(addon.Status.Conditions, "Configured"))
	})
}

// eventuallyCompleted waits until the add-on on a cluster has the configuration that it is to have.
func (w *world) eventuallyCompleted(cluster string) {
	w.Helper()
	w.eventually(cluster, func(c assert.TestingT, addon *addonv1beta1.ManagedClusterAddOn) {
		condition := meta.FindStatusCondition(addon.Status.Conditions, "Progressing")
		if assert.NotNil(c, condition) {
			assert.Equal(c, "Completed", condition.Reason)
		}
		for _, reference := range addon.Status.ConfigReferences {
			assert.Equal(c, reference.DesiredConfig, reference.LastAppliedConfig)
		}
	})
}

// eventuallySays waits until a condition of the add-on on a cluster has status and reason and contains the text.
func (w *world) eventuallySays(cluster string, want metav1.Condition) {
	w.Helper()
	w.eventually(cluster, func(c assert.TestingT, addon *addonv1beta1.ManagedClusterAddOn) {
		condition := meta.FindStatusCondition(addon.Status.Conditions, want.Type)
		if assert.NotNil(c, condition) {
			assert.Equal(c, want.Status, condition.Status)
			assert.Equal(c, want.Reason, condition.Reason)
			assert.Contains(c, condition.Message, want.Message)
		}
	})
}

// eventuallyCounts waits until a placement of the ClusterManagementAddOn has the message; how many clusters are stuck
// may follow.
func (w *world) eventuallyCounts(index int, message string) {
	w.Helper()
	w.eventuallyManagement(func(c assert.TestingT, management *addonv1beta1.ClusterManagementAddOn) {
		if assert.Greater(c, len(management.Status.InstallProgressions), index) {
			progression := management.Status.InstallProgressions[index]
			condition := meta.FindStatusCondition(progression.Conditions, "Progressing")
			if assert.NotNil(c, condition) {
				assert.True(c, strings.HasPrefix(condition.Message, strings.TrimSuffix(message, ".")), condition.Message)
			}
		}
	})
}
