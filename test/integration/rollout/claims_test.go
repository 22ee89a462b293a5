package rollout_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// An agent may write the claims of its cluster. One that has no time zone, or a bad one, must not stop others for ever: as
// with a configuration that does not exist, nobody knows for how long.
func TestAnAgentWithoutItsClaimStopsNoOtherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.clusters(2)
	slices.Sort(clusters)
	w.create(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p"}})
	w.decides("p", "0", clusters[0])
	w.decides("p", "1", clusters[1])
	w.create(w.template("t", "one"), w.management(nil, w.strategy("p", w.usesTemplate("t"))))
	w.installs(clusters...)
	for _, cluster := range clusters {
		w.eventuallyDesires(cluster, w.usesTemplate("t"))
	}
	w.deploys(clusters...)
	w.updateManagement(func(c *addonv1alpha1.ClusterManagementAddOn) {
		c.Spec.InstallStrategy.Placements[0].RolloutStrategy = clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{
				RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "1s", MaxFailures: intstr.FromString("100%")},
			},
		}
	})
	w.claims(clusters[0], "../../etc/passwd")
	w.claims(clusters[1], "Europe/Berlin")
	w.create(&policies.MaintenanceWindow{
		ObjectMeta: metav1.ObjectMeta{Name: w.addon},
		Spec: policies.MaintenanceWindowSpec{
			Kind: "Allow", Schedule: "* * * * *", Duration: metav1.Duration{Duration: time.Hour}, AddOns: []string{w.addon},
			TimeZoneClaim: "zone.example.com",
		},
	})
	window := &policies.MaintenanceWindow{}
	suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
		if assert.NoError(c, plane.Client.Get(w.Context(), client.ObjectKey{Name: w.addon}, window)) {
			assert.NotEmpty(c, window.Status.Problem)
		}
	}))
	old := w.hash(w.usesTemplate("t"))
	w.edit("two")
	w.eventuallyHolds(clusters[0], old, "cannot be used")
	w.eventuallyDesires(clusters[1], w.usesTemplate("t"))
}

func (w *world) claims(cluster, zone string) {
	w.Helper()
	c := &clusterv1.ManagedCluster{}
	require.NoError(w, plane.Client.Get(w.Context(), client.ObjectKey{Name: cluster}, c))
	c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "zone.example.com", Value: zone}}
	require.NoError(w, plane.Client.Status().Update(w.Context(), c))
}
