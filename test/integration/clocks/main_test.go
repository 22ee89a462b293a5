// Package clocks_test calls reconcilers by hand, on a real API server, with the rights that manifests/ ships and under a
// clock that only the tests move. It shows to the second what happens when: what takes minutes takes none here.
package clocks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/hub/cluster"
	"github.com/spokelet/spokelet/hub/cluster/meter"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// plane is a hub on which no hub manager runs.
var plane *suite.Plane

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "clocks"}, manifests.CRDs(), manifests.Hub())
	})
}

// hand is a reconciler that is called by hand for one cluster.
type hand struct {
	*testing.T
	suite.Reconciler
	name string
	// events are the Events that it told.
	events chan string
}

// newHand makes the reconciler of clusters for a cluster of the test.
func newHand(t *testing.T) *hand {
	t.Helper()
	live := suite.NewLive(t, plane.AccountConfig(t, names.NamespaceHub, names.ServiceAccountManager))
	require.NoError(t, cluster.Index(t.Context(), live))
	// Times in objects have no fractions of a second.
	clock := clocktesting.NewFakePassiveClock(time.Now().Truncate(time.Second))
	recorder := events.NewFakeRecorder(10)
	reconciler := &cluster.Reconciler{
		Client: live, Live: live, AddOns: addonapi.Client{Client: live}, ForeignWorks: live.Cache(),
		Recorder: recorder, Meter: meter.New(clock), Clock: clock,
	}
	h := &hand{
		T: t, name: suite.UniqueName(t.Name()), events: recorder.Events,
		Reconciler: suite.Reconciler{Client: live, Clock: clock, Reconcile: reconciler.Reconcile},
	}
	h.settle(reconcile.Request{})
	return h
}

func (h *hand) request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: h.name}}
}

// settle calls the reconciler for the cluster, or for another request, until it rests, and returns what it wants.
func (h *hand) settle(other ...reconcile.Request) time.Duration {
	h.Helper()
	return h.Settle(h, append(other, h.request())[0])
}

// read returns the cluster.
func (h *hand) read() *clusterv1.ManagedCluster {
	h.Helper()
	var found clusterv1.ManagedCluster
	require.NoError(h, plane.Client.Get(h.Context(), client.ObjectKey{Name: h.name}, &found))
	return &found
}
