package scenarios_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// everywhere is an add-on of groups.yaml on all clusters.
func everywhere(t *testing.T, addOn string) story {
	t.Helper()
	s := story{T: t, addOn: addOn, file: "groups.yaml"}
	s.apply("SIZE", "100%", "VERSION", "v1", "STRATEGY", "{type: All}")
	for _, cluster := range []string{east, local, west} {
		s.has("v1", cluster)
		s.runs(cluster)
	}
	return s
}

// deletedBy deletes the ClusterManagementAddOn in one of the ways of Kubernetes.
func (s story) deletedBy(policy metav1.DeletionPropagation) {
	s.Helper()
	management := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: s.addOn}}
	require.NoError(s, plane.Client.Delete(s.Context(), management, client.PropagationPolicy(policy)))
}

// left waits until nothing of the add-on is on the hub and on any cluster.
func (s story) left() {
	s.Helper()
	for _, cluster := range []string{east, local, west} {
		goes(s.T, cluster, &appsv1.Deployment{ObjectMeta: in(s.addOn)})
		goes(s.T, local, &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: s.addOn}})
	}
	goes(s.T, local, &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: s.addOn}})
	suite.Eventually(s, func() error {
		var works workv1.ManifestWorkList
		err := plane.Client.List(s.Context(), &works, client.MatchingLabels{names.LabelAddonName: s.addOn})
		if err == nil && len(works.Items) > 0 {
			err = fmt.Errorf("%d works are left", len(works.Items))
		}
		return err
	})
}

// Shows: hub/story-removed, hub/removal-matrix
func TestAnAddOnLeavesWithItsClusterManagementAddOn(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]metav1.DeletionPropagation{
		"dew": metav1.DeletePropagationBackground, "rime": metav1.DeletePropagationForeground,
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			s := everywhere(t, name)
			s.deletedBy(policy)
			s.left()
		})
	}
}

// Shows: hub/story-removed, hub/removal-matrix
func TestOrphansOfAClusterManagementAddOnStayAndReturnToANewOne(t *testing.T) {
	t.Parallel()
	s := everywhere(t, "mist")
	addOn := func() *addonv1beta1.ManagedClusterAddOn {
		found, err := plane.AddOns.GetAddOn(t.Context(), client.ObjectKey{Namespace: west, Name: s.addOn})
		require.NoError(t, err)
		return found
	}
	before := addOn()
	running := get(t, west, names.NamespaceAgentAddon, s.addOn, &appsv1.Deployment{}).UID
	s.deletedBy(metav1.DeletePropagationOrphan)
	goes(t, local, &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: s.addOn}})
	suite.Consistently(t, time.Second, func() error {
		if after := addOn(); after.UID != before.UID || !after.DeletionTimestamp.IsZero() {
			return fmt.Errorf("the add-on was deleted: %+v", after.ObjectMeta)
		}
		return hasImage(t, west, names.NamespaceAgentAddon, s.addOn, "registry.example.com/"+s.addOn+":v1")
	})

	s.apply("SIZE", "100%", "VERSION", "v1", "STRATEGY", "{type: All}")
	management, err := plane.AddOns.GetClusterManagementAddOn(t.Context(), s.addOn)
	require.NoError(t, err)
	suite.Eventually(t, func() error {
		after := addOn()
		if owner := metav1.GetControllerOf(after); owner == nil || owner.UID != management.UID {
			return fmt.Errorf("the owner is %v", owner)
		}
		if meta.IsStatusConditionFalse(after.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured) {
			return fmt.Errorf("it is not configured: %+v", after.Status.Conditions)
		}
		return nil
	})
	assert.Equal(t, before.UID, addOn().UID)
	assert.Equal(t, running, get(t, west, names.NamespaceAgentAddon, s.addOn, &appsv1.Deployment{}).UID)
	s.deletedBy(metav1.DeletePropagationBackground)
	s.left()
}
