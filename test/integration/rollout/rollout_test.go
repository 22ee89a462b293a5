package rollout_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: hub/install-and-upgrade
func TestInstallAndUpgrade(t *testing.T) {
	w := newWorld(t)
	clusters := w.clusters(3)
	first, config := w.template("t", "one"), w.deploymentConfig()
	w.create(first, config, w.management(
		[]addonv1alpha1.AddOnConfig{w.usesDeploymentConfig()}, w.strategy("p", w.usesTemplate("t"))))
	w.selects("p", clusters...)
	w.eventuallyCounts(0, "selected clusters 3. configured addons 0/3 progressing..., 0 failed 0 timeout.")

	before := sent.patches()
	w.installs(clusters...)
	for _, cluster := range clusters {
		w.eventuallyDesires(cluster, w.usesDeploymentConfig(), w.usesTemplate("t"))
		w.eventuallySays(cluster, metav1.Condition{
			Type: "Progressing", Status: metav1.ConditionFalse, Reason: "WaitingForManifestApplied",
		})
		addon := w.addOn(cluster)
		assert.Equal(t, int64(1), addon.Status.ConfigReferences[1].LastObservedGeneration)
		assert.Nil(t, addon.Status.ConfigReferences[1].LastAppliedConfig)
	}
	w.eventuallyCounts(0, "selected clusters 3. configured addons 3/3 progressing..., 0 failed 0 timeout.")
	assert.LessOrEqual(t, sent.patches()-before, 2*len(clusters), "about one write per add-on, and few counts")

	w.deploys(clusters[:2]...)
	w.eventuallyCompleted(clusters[0])
	w.eventuallyCompleted(clusters[1])
	w.deploys(clusters[2])
	w.eventuallyCounts(0, "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
	w.eventuallyManagement(func(c assert.TestingT, management *addonv1beta1.ClusterManagementAddOn) {
		reference := management.Status.InstallProgressions[0].ConfigReferences[0]
		assert.Equal(c, w.hash(w.usesTemplate("t")), reference.DesiredConfig.SpecHash)
		assert.Equal(c, reference.DesiredConfig, reference.LastAppliedConfig)
		assert.Equal(c, reference.DesiredConfig, reference.LastKnownGoodConfig)
		assert.Equal(c, w.hash(w.usesDeploymentConfig()),
			management.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash)
	})

	// A new content of the template is a rollout, and what was applied stays recorded until it is done.
	old := w.hash(w.usesTemplate("t"))
	update(w, first, func(t *addonv1alpha1.AddOnTemplate) { t.Spec = w.template("t", "two").Spec })
	for _, cluster := range clusters {
		w.eventuallyDesires(cluster, w.usesDeploymentConfig(), w.usesTemplate("t"))
		w.eventuallySays(cluster, metav1.Condition{
			Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Progressing",
			Message: "progressing... mca and work configs mismatch",
		})
		reference := w.addOn(cluster).Status.ConfigReferences[1]
		assert.Equal(t, old, reference.LastAppliedConfig.SpecHash)
		assert.Equal(t, int64(2), reference.LastObservedGeneration)
	}
	w.deploys(clusters...)
	w.eventuallyCounts(0, "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")

	// At rest nothing is sent.
	everything := []string{http.MethodGet, http.MethodPatch, http.MethodPut, http.MethodPost, http.MethodDelete}
	suite.Quiet(t, 2*time.Second, func() int { return sent.of(everything...) })
}

// Shows: hub/precedence
func TestPrecedence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := w.clusters(1)[0]
	w.create(w.template("default", "d"), w.template("placed", "p"), w.template("later", "l"), w.template("own", "o"))
	w.create(w.management([]addonv1alpha1.AddOnConfig{w.usesTemplate("default")},
		w.strategy("p", w.usesTemplate("placed")), w.strategy("q", w.usesTemplate("later"))))
	for _, placement := range []string{"p", "q"} {
		w.selects(placement)
		w.reselects(placement)
	}
	w.installs(cluster)
	w.eventuallyDesires(cluster, w.usesTemplate("default"))

	w.reselects("p", cluster)
	w.eventuallyDesires(cluster, w.usesTemplate("placed"))
	w.reselects("q", cluster)
	w.eventuallyDesires(cluster, w.usesTemplate("later"))
	w.eventuallyCounts(0, "selected clusters 1. configured addons 0/0 progressing..., 0 failed 0 timeout.")
	w.eventuallyCounts(1, "selected clusters 1. configured addons 1/1 progressing..., 0 failed 0 timeout.")

	addon := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: w.addon}}
	update(w, addon, func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.Spec.Configs = []addonv1alpha1.AddOnConfig{w.usesTemplate("own")}
	})
	w.eventuallyDesires(cluster, w.usesTemplate("own"))
	update(w, addon, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.Configs = nil })
	w.eventuallyDesires(cluster, w.usesTemplate("later"))
	w.reselects("q")
	w.eventuallyDesires(cluster, w.usesTemplate("placed"))
	w.updateManagement(func(c *addonv1alpha1.ClusterManagementAddOn) {
		c.Spec.InstallStrategy = addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual}
	})
	w.eventuallyDesires(cluster, w.usesTemplate("default"))
	w.eventuallyManagement(func(c assert.TestingT, management *addonv1beta1.ClusterManagementAddOn) {
		assert.Empty(c, management.Status.InstallProgressions)
	})
}

// Shows: hub/missing-configuration
func TestMissingConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := w.clusters(1)[0]
	w.create(w.management(nil, w.strategy("p", w.usesTemplate("t"))))
	w.selects("p", cluster)
	w.installs(cluster)
	missing := metav1.Condition{
		Type: "Configured", Status: metav1.ConditionFalse, Reason: "ConfigurationsNotConfigured",
		Message: `addontemplates "` + w.addon + `-t" does not exist (named by placement ` + w.namespace + "/p",
	}
	w.eventuallySays(cluster, missing)
	w.eventuallyCounts(0, "selected clusters 1. configured addons 0/1 progressing..., 0 failed 0 timeout. "+
		`addontemplates "`+w.addon+`-t" does not exist.`)
	assert.Empty(t, w.addOn(cluster).Status.ConfigReferences)

	template := w.template("t", "one")
	w.create(template)
	w.eventuallyDesires(cluster, w.usesTemplate("t"))
	w.deploys(cluster)
	w.eventuallyCompleted(cluster)
	w.eventuallyCounts(0, "selected clusters 1. configured addons 1/1 completed with no errors, 0 failed 0 timeout.")

	// What is in place survives the config that it came from, with its hash.
	hash := w.hash(w.usesTemplate("t"))
	require.NoError(t, plane.Client.Delete(t.Context(), template))
	w.eventuallySays(cluster, missing)
	assert.Equal(t, hash, w.addOn(cluster).Status.ConfigReferences[0].DesiredConfig.SpecHash)
	w.eventuallyManagement(func(c assert.TestingT, management *addonv1beta1.ClusterManagementAddOn) {
		assert.Equal(c, hash, management.Status.InstallProgressions[0].ConfigReferences[0].DesiredConfig.SpecHash)
	})
	w.create(w.template("t", "one"))
	w.eventuallyDesires(cluster, w.usesTemplate("t"))
}

// Shows: hub/lost-placement-keeps
func TestLostPlacementKeepsWhatThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.clusters(2)
	w.create(w.template("default", "d"), w.template("placed", "p"), w.management(
		[]addonv1alpha1.AddOnConfig{w.usesTemplate("default")}, w.strategy("p", w.usesTemplate("placed"))))
	w.selects("p", clusters[0])
	w.installs(clusters[0])
	w.eventuallyDesires(clusters[0], w.usesTemplate("placed"))

	w.uproots("p")
	w.eventuallySays(clusters[0], metav1.Condition{
		Type: "Configured", Status: metav1.ConditionTrue, Reason: "ConfigurationsConfigured",
		Message: "placement " + w.namespace + "/p does not exist",
	})
	w.eventuallyDesires(clusters[0], w.usesTemplate("placed"))
	w.eventuallyCounts(0, "selected clusters 0. configured addons 0/0 progressing..., 0 failed 0 timeout. "+
		"placement "+w.namespace+"/p does not exist: create it, or correct spec.installStrategy.placements.")

	w.selects("p", clusters[1])
	w.reselects("p", clusters[1]) // without a status, the page of a new Placement may be one of several
	w.eventuallyDesires(clusters[0], w.usesTemplate("default"))
}

// A placement is deleted and created again, as GitOps tools do, while an earlier one selects its cluster as well.
//
// Shows: hub/placement-in-doubt, invariants/selected-stays
func TestReplacedPlacementKeepsWhatItSelected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := w.clusters(1)[0]
	low, high := w.usesTemplate("low"), w.usesTemplate("high")
	w.create(w.template("low", "l"), w.template("high", "h"), w.management(nil, w.strategy("low", low), w.strategy("high", high)))
	w.selects("low", cluster)
	w.selects("high", cluster)
	w.installs(cluster)
	w.eventuallyDesires(cluster, high)
	says := func(message string) {
		w.Helper()
		w.eventuallySays(cluster, metav1.Condition{
			Type: "Configured", Status: metav1.ConditionTrue, Reason: "ConfigurationsConfigured", Message: message,
		})
		w.eventuallyDesires(cluster, high)
	}
	w.uproots("high")
	says("placement " + w.namespace + "/high does not exist")
	w.selects("high")
	says("placement " + w.namespace + "/high has not decided yet")
	w.reselects("high", cluster)
	w.eventually(cluster, func(c assert.TestingT, addon *addonv1beta1.ManagedClusterAddOn) {
		configured := meta.FindStatusCondition(addon.Status.Conditions, "Configured")
		if assert.NotNil(c, configured) {
			assert.Equal(c, "Configurations configured", configured.Message)
		}
	})
	w.eventuallyDesires(cluster, high)
	w.reselects("high", "another")
	w.eventuallyDesires(cluster, low)
}

// uproots deletes a placement and its decision.
func (w *world) uproots(placement string) {
	w.Helper()
	for _, object := range []client.Object{
		&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: placement}},
		&clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: placement + "-decision-1",
		}},
	} {
		require.NoError(w, plane.Client.Delete(w.Context(), object))
	}
}

func TestConfigOfAKindThatTheAddOnsManagerReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cluster := w.clusters(1)[0]
	config := addonv1alpha1.AddOnConfig{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "configmaps"},
		ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: w.namespace, Name: "c"},
	}
	w.create(w.management([]addonv1alpha1.AddOnConfig{config}))
	w.installs(cluster)
	w.eventuallySays(cluster, metav1.Condition{
		Type: "Configured", Status: metav1.ConditionFalse, Reason: "ConfigurationsNotConfigured",
		Message: `the spec hash of configmaps "` + w.namespace + `/c" (named by defaults of ClusterManagementAddOn ` + w.addon + `) is not known yet`,
	})
	suite.Eventually(t, suite.True("the status of the ClusterManagementAddOn must be written", func() bool {
		management, err := plane.AddOns.GetClusterManagementAddOn(t.Context(), w.addon)
		if err != nil || len(management.Status.DefaultConfigReferences) == 0 {
			return false
		}
		after := management.DeepCopy()
		after.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash = "reported"
		_, err = plane.AddOns.PatchClusterManagementAddOnStatus(t.Context(), management, after)
		return err == nil
	}))
	w.eventually(cluster, func(c assert.TestingT, addon *addonv1beta1.ManagedClusterAddOn) {
		if assert.Len(c, addon.Status.ConfigReferences, 1) {
			assert.Equal(c, "reported", addon.Status.ConfigReferences[0].DesiredConfig.SpecHash)
		}
	})
	w.eventuallySays(cluster, metav1.Condition{
		Type: "Configured", Status: metav1.ConditionTrue, Reason: "ConfigurationsConfigured",
	})
}

func TestHostedAddOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.clusters(2)
	managed, hosting := clusters[0], clusters[1]
	w.create(w.management(nil))
	w.create(&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: managed, Name: w.addon, Annotations: map[string]string{names.AnnotationHostingCluster: hosting},
	}})
	w.reportsApplied(managed)
	w.eventuallySays(managed, metav1.Condition{
		Type: "Progressing", Status: metav1.ConditionFalse, Reason: "WaitingForHostingManifestApplied",
	})
	w.deploys(managed)
	addon := w.addOn(managed)
	after := addon.DeepCopy()
	after.Status.Conditions = append(after.Status.Conditions, metav1.Condition{
		Type: "HostingManifestApplied", Status: metav1.ConditionTrue, Reason: "AddonManifestApplied",
		LastTransitionTime: metav1.Now(),
	})
	_, err := plane.AddOns.PatchAddOnStatus(t.Context(), addon, after)
	require.NoError(t, err)
	// The work in deploys carries an empty map of hashes: there are no configs.
	w.eventuallyCompleted(managed)

	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Namespace: hosting, Name: "addon-" + w.addon + "-deploy-hosting-" + managed + "-0",
		Labels: map[string]string{names.LabelAddonName: w.addon, names.LabelAddonNamespace: managed},
	}}
	w.create(work)
	w.eventuallySays(managed, metav1.Condition{
		Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Progressing",
		Message: "progressing... work is not ready",
	})
	require.NoError(t, plane.Client.Delete(t.Context(), work))
	w.eventuallyCompleted(managed)
}

// Shows: hub/self-managed
func TestSelfManagedAddOnIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.clusters(2)
	management := w.management([]addonv1alpha1.AddOnConfig{w.usesTemplate("t")})
	management.Annotations = map[string]string{names.AnnotationLifecycle: "self"}
	w.create(w.template("t", "one"), management)
	w.installs(clusters[0])
	w.eventuallyManagement(func(c assert.TestingT, management *addonv1beta1.ClusterManagementAddOn) {
		assert.Len(c, management.Status.DefaultConfigReferences, 1)
	})
	assert.Empty(t, w.addOn(clusters[0]).Status.Conditions)
	w.updateManagement(func(c *addonv1alpha1.ClusterManagementAddOn) { c.Annotations = nil })
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
}
