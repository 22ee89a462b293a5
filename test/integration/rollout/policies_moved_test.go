package rollout_test

import (
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/spokelet/spokelet/hub/window"
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

// passes returns how many passes of windows there were.
func passes(t *testing.T) (total float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if slices.ContainsFunc(metric.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == window.Name }) {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return total
}

// A hub may have a window for each of 3,000 clusters. The test has the hub for itself: it counts passes.
//
// Shows: policies/window-named
func TestALabelThatNoWindowNamesCausesNoPassOfWindows(t *testing.T) {
	w := newWorld(t)
	cluster := w.clusters(1)[0]
	frozen, other := w.frozen(), w.frozen()
	other.Name += "-other"
	other.Spec.ClusterSelector.MatchLabels = map[string]string{"kind": w.addon}
	w.create(frozen, other)
	counts := func(window *policies.MaintenanceWindow, clusters int) {
		w.Helper()
		suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
			if assert.NoError(c, plane.Client.Get(w.Context(), client.ObjectKeyFromObject(window), window)) {
				assert.EqualValues(c, clusters, window.Status.Clusters)
				assert.Equal(c, window.Generation, window.Status.ObservedGeneration)
			}
		}))
	}
	counts(frozen, 0)
	counts(other, 0)
	w.labels(cluster, map[string]string{"frozen": w.addon})
	counts(frozen, 1)
	before := passes(t)
	w.labels(cluster, map[string]string{"frozen": w.addon, "note": "1"})
	w.labels(cluster, map[string]string{"frozen": w.addon, "note": "2", "kind": w.addon})
	counts(other, 1)
	w.labels(cluster, map[string]string{"frozen": "no", "note": "2", "kind": w.addon})
	counts(frozen, 0) // What the note had caused would have been before.
	assert.LessOrEqual(t, passes(t)-before, 2.0)
}

// A finalizer may keep a window for long after a person has deleted it.
//
// Shows: policies/window-deleted
func TestAWindowThatIsBeingDeletedHoldsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	clusters := w.inWaves(1, clusterv1alpha1.RolloutStrategy{})
	old := w.hash(w.usesTemplate("t"))
	window := w.frozen()
	window.Finalizers = []string{"example.com/kept"}
	w.create(window)
	w.labels(clusters[0], map[string]string{"frozen": w.addon})
	suite.Eventually(w, suite.Checks(func(c assert.TestingT) {
		if assert.NoError(c, plane.Client.Get(w.Context(), client.ObjectKeyFromObject(window), window)) {
			assert.EqualValues(c, 1, window.Status.Clusters)
		}
	}))
	w.edit("two")
	w.eventuallyHolds(clusters[0], old, "MaintenanceWindow "+w.addon+" denies it")
	require.NoError(t, plane.Client.Delete(w.Context(), window))
	w.eventuallyDesires(clusters[0], w.usesTemplate("t"))
	update(w, window, func(w *policies.MaintenanceWindow) { w.Finalizers = nil })
}
