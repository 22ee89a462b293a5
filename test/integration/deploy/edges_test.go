package deploy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/test/suite"
)

// worksOf lists the works of an add-on in the namespace of its cluster.
func (f fixture) worksOf(t *testing.T) []workv1.ManifestWork {
	t.Helper()
	var list workv1.ManifestWorkList
	require.NoError(t, plane.Client.List(t.Context(), &list, client.InNamespace(f.cluster)))
	return list.Items
}

// Shows: hub/nothing-to-deploy
func TestATemplateWithoutObjectsRemovesItsWorksAndIsCompleted(t *testing.T) {
	t.Parallel()
	f := install(t, "emptied")
	f.work(t, nil)
	f.report(t, 1)
	f.condition(t, "Available", metav1.ConditionTrue, "ProbeAvailable")
	suite.Eventually(t, func() error {
		template := &addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: f.addOn}}
		if err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(template), template); err != nil {
			return err
		}
		template.Spec.AgentSpec.Workload.Manifests = nil
		return plane.Client.Update(t.Context(), template)
	})
	suite.Eventually(t, func() error {
		if left := f.worksOf(t); len(left) > 0 {
			return fmt.Errorf("%d works are left", len(left))
		}
		return nil
	})
	suite.Eventually(t, func() error {
		applied := f.condition(t, "ManifestApplied", metav1.ConditionTrue, "AddonManifestApplied")
		if !strings.Contains(applied.Message, "no manifests to apply") {
			return errors.New(applied.Message)
		}
		return nil
	})
	f.condition(t, "Progressing", metav1.ConditionFalse, "Completed")
	suite.Eventually(t, func() error {
		for _, reference := range f.get(t.Context()).Status.ConfigReferences {
			if reference.LastAppliedConfig == nil || *reference.LastAppliedConfig != *reference.DesiredConfig {
				return fmt.Errorf("%s is not applied: %+v", reference.Resource, reference)
			}
		}
		return nil
	})
	f.condition(t, "Available", metav1.ConditionUnknown, "WorkNotFound")
	f.atRest(t)
}

// Shows: hub/name-taken
func TestAWorkOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	for addOn, labels := range map[string]map[string]string{
		"occupied":          nil,
		"occupied-labelled": {"open-cluster-management.io/addon-name": "occupied-labelled"},
	} {
		t.Run(addOn, func(t *testing.T) {
			t.Parallel()
			f := fixture{addOn: addOn, cluster: addOn + "-cluster"}
			f.prepare(t)
			theirs := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
				Namespace: f.cluster, Name: f.workKey().Name, Labels: labels,
			}}
			theirs.Spec.Workload.Manifests = []workv1.Manifest{}
			require.NoError(t, plane.Client.Create(t.Context(), theirs))
			f.apply(t)
			f.enable(t)
			if labels == nil {
				// It is not seen before it is in the way.
				failed := f.condition(t, "ManifestApplied", metav1.ConditionFalse, "ManifestWorkApplyFailed")
				assert.Contains(t, failed.Message, f.workKey().Name)
			} else {
				// The next number is free.
				suite.Eventually(t, func() error {
					second := client.ObjectKey{Namespace: f.cluster, Name: "addon-" + addOn + "-deploy-1"}
					return plane.Client.Get(t.Context(), second, &workv1.ManifestWork{})
				})
			}
			after := &workv1.ManifestWork{}
			require.NoError(t, plane.Client.Get(t.Context(), f.workKey(), after))
			assert.Equal(t, theirs.ResourceVersion, after.ResourceVersion, "it is not touched")
		})
	}
}

// Shows: hub/no-works-while-leaving
func TestAClusterThatIsBeingDeletedGetsNoAddOn(t *testing.T) {
	t.Parallel()
	f := fixture{addOn: "going-away", cluster: "going-away-cluster"}
	f.prepare(t)
	f.apply(t)
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: f.cluster}}
	require.NoError(t, plane.Client.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":["example.com/later"]}}`))))
	require.NoError(t, plane.Client.Delete(t.Context(), cluster))
	suite.Eventually(t, func() error {
		err := plane.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)
		if err == nil && cluster.DeletionTimestamp == nil {
			err = errors.New("the cluster is not being deleted")
		}
		return err
	})
	f.enable(t)
	// Another add-on, of a cluster that stays, shows that the hub manager has had the time.
	other := install(t, "staying")
	other.work(t, nil)
	f.atRest(t)
	assert.Empty(t, f.worksOf(t))
	assert.Empty(t, f.get(t.Context()).Status.Registrations)
	require.NoError(t, plane.Client.Patch(t.Context(), cluster, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":null}}`))))
}

// Shows: hub/hook-not-configured
func TestAHookRunsAlthoughItsAddOnIsNotConfigured(t *testing.T) {
	t.Parallel()
	f := installHosted(t, "unset", "", hook("Job", "clean", mark))
	f.work(t, nil)
	f.finalizers(t, hookFinalizer)
	// From now on a configuration is named that does not exist.
	suite.Eventually(t, func() error {
		before := f.get(t.Context())
		after := before.DeepCopy()
		after.Spec.Configs = []addonv1beta1.AddOnConfig{{
			ConfigGroupResource: confighash.Template(), ConfigReferent: addonv1beta1.ConfigReferent{Name: "unset-missing"},
		}}
		_, err := plane.AddOns.PatchAddOn(t.Context(), before, after)
		return err
	})
	f.condition(t, "Configured", metav1.ConditionFalse, "ConfigurationsNotConfigured")
	f.delete(t)
	holds(t, f.hookKey(), "Job/clean")
	reports(t, f.hookKey(), job(f, "clean"), map[string]any{"JobComplete": "True"})
	suite.Eventually(t, suite.True("the add-on must be gone", func() bool { return f.get(t.Context()) == nil }))
}

// Shows: hub/back-again
func TestAnAddOnIsJudgedAgainWhenItsClusterIsBack(t *testing.T) {
	t.Parallel()
	f := install(t, "returning")
	f.work(t, nil)
	f.report(t, 1)
	f.condition(t, "Available", metav1.ConditionTrue, "ProbeAvailable")
	cluster := func(status metav1.ConditionStatus) {
		suite.Eventually(t, func() error {
			found := &clusterv1.ManagedCluster{}
			if err := plane.Client.Get(t.Context(), client.ObjectKey{Name: f.cluster}, found); err != nil {
				return err
			}
			meta.SetStatusCondition(&found.Status.Conditions, metav1.Condition{
				Type: clusterv1.ManagedClusterConditionAvailable, Status: status, Reason: "ByTheTest",
			})
			return plane.Client.Status().Update(t.Context(), found)
		})
	}
	cluster(metav1.ConditionUnknown)
	f.atRest(t)
	// This is what marks the add-ons of silent clusters.
	suite.Eventually(t, func() error {
		before := f.get(t.Context())
		after := before.DeepCopy()
		meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
			Type: "Available", Status: metav1.ConditionUnknown, Reason: "ManagedClusterLeaseUpdateStopped",
		})
		_, err := plane.AddOns.PatchAddOnStatus(t.Context(), before, after)
		return err
	})
	f.atRest(t)
	f.condition(t, "Available", metav1.ConditionUnknown, "ManagedClusterLeaseUpdateStopped")
	cluster(metav1.ConditionTrue)
	f.condition(t, "Available", metav1.ConditionTrue, "ProbeAvailable")
}
