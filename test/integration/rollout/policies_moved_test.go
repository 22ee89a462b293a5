package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/policies"
	"github.com/spokelet/spokelet/test/suite"
)

// frozen is a window that denies, for ever, where a label is.
func (w *world) frozen() *policies.MaintenanceWindow {
	return &policies.MaintenanceWindow{
		ObjectMeta: metav1.ObjectMeta{Name: w.addon},
		Spec: policies.MaintenanceWindowSpec{
			Kind: "Deny", Schedule: "@yearly", Duration: metav1.Duration{Duration: 366 * 24 * time.Hour}, AddOns: []string{w.addon},
			ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"frozen": w.addon}},
		},
	}
}

// A cluster that is taken out of a window goes on, also with an add-on that a person installed: no rollout plans it.
func TestAnAddOnThatAPersonInstalledGoesOnWithoutTheLabelOfAWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.clusters(1)
	w.create(w.template("t", "one"), w.management([]addonv1alpha1.AddOnConfig{w.usesTemplate("t")}))
	w.installs(clusters...)
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	old := w.hash(w.usesTemplate("t"))
	w.create(w.frozen())
	w.labels(clusters[0], map[string]string{"frozen": w.addon})
	suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
		window := w.frozen()
		if assert.NoError(c, plane.Client.Get(w.Context(), client.ObjectKeyFromObject(window), window)) {
			assert.EqualValues(c, 1, window.Status.Clusters)
		}
	}))
	w.edit("two")
	w.eventuallyHolds(clusters[0], old, "denies it")
	w.labels(clusters[0], map[string]string{"frozen": "no"})
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
}

// The status of a window is about the clusters that there are.
func TestAWindowCountsNoClusterThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.clusters(2)
	w.create(w.frozen())
	counts := func(n int) {
		suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
			window := w.frozen()
			if assert.NoError(c, plane.Client.Get(w.Context(), client.ObjectKeyFromObject(window), window)) {
				assert.EqualValues(c, n, window.Status.Clusters)
			}
		}))
	}
	for _, cluster := range clusters {
		w.labels(cluster, map[string]string{"frozen": w.addon})
	}
	counts(2)
	require.NoError(t, plane.Client.Delete(w.Context(), &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusters[0]}}))
	counts(1)
}
