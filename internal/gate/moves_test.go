package gate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// hub is one with windows.
type hub struct {
	client.Reader
	all []policies.MaintenanceWindow
}

func (hub) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

func (h hub) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, is := into.(*policies.MaintenanceWindowList); is {
		list.Items = h.all
	}
	return nil
}

func TestAWindowThatIsBeingDeletedHoldsNobody(t *testing.T) {
	w := window("freeze", "Deny", "* * * * *", time.Hour)
	w.Finalizers = []string{"example.com/kept"}
	g, err := (&gate.Reader{Client: hub{all: []policies.MaintenanceWindow{w}}}).Gate(t.Context(), "logs")
	require.NoError(t, err)
	require.False(t, g.Open())
	w.DeletionTimestamp = &metav1.Time{Time: noon()}
	g, err = (&gate.Reader{Client: hub{all: []policies.MaintenanceWindow{w}}}).Gate(t.Context(), "logs")
	require.NoError(t, err)
	assert.True(t, g.Open())
}

// cluster is one with labels and a claim of its time zone; empty for none.
func cluster(labels map[string]string, zone string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: labels}}
	c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "version", Value: zone}}
	if zone != "" {
		c.Status.ClusterClaims = append(c.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: "zone", Value: zone})
	}
	return c
}

// With a window for each of 3,000 clusters, a change of one cluster must not be a pass of all.
func TestAChangeOfAClusterWakesTheWindowsThatNameWhatChanged(t *testing.T) {
	type labels = map[string]string
	shops := window("shops", "Allow", "@daily", time.Hour, labelled(labels{"kind": "shop"}))
	tokyo := window("zoned", "Allow", "@daily", time.Hour, labelled(labels{"kind": "shop"}),
		func(s *policies.MaintenanceWindowSpec) { s.TimeZoneClaim = "zone" })
	not := window("others", "Allow", "@daily", time.Hour, func(s *policies.MaintenanceWindowSpec) {
		s.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{
			Key: "kind", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"shop"},
		}}
	})
	every := window("every", "Deny", "@daily", time.Hour)
	bad := window("bad", "Deny", "@daily", time.Hour, labelled(labels{"a b": "c"}))
	r := &gate.Reader{Client: hub{all: []policies.MaintenanceWindow{shops, tokyo, not, every, bad}}}
	var woken []string
	handler := r.Moves(0, func(_ context.Context, o client.Object, windows []policies.MaintenanceWindow) []ctrl.Request {
		assert.Equal(t, "c", o.GetName())
		for i := range windows {
			woken = append(woken, windows[i].Name)
		}
		return nil
	})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	for sentence, tc := range map[string]struct {
		was, is *clusterv1.ManagedCluster
		woken   []string
	}{
		"a label that no window names":     {cluster(labels{"kind": "shop", "a": "1"}, "UTC"), cluster(labels{"kind": "shop", "a": "2"}, "UTC"), nil},
		"a label that windows name":        {cluster(labels{}, ""), cluster(labels{"kind": "shop"}, ""), []string{"shops", "zoned", "others"}},
		"its value, which none names":      {cluster(labels{"kind": "a"}, ""), cluster(labels{"kind": "b"}, ""), nil},
		"a label that is gone":             {cluster(labels{"kind": "shop"}, ""), cluster(nil, ""), []string{"shops", "zoned", "others"}},
		"the claim that a window names":    {cluster(labels{"kind": "shop"}, "UTC"), cluster(labels{"kind": "shop"}, "Asia/Tokyo"), []string{"zoned"}},
		"that claim, where it is not for":  {cluster(nil, "UTC"), cluster(nil, "Asia/Tokyo"), nil},
		"a cluster that is created":        {nil, cluster(labels{"kind": "shop"}, ""), []string{"shops", "zoned", "every"}},
		"a cluster that is gone":           {cluster(labels{"kind": "office"}, ""), nil, []string{"others", "every"}},
		"a heartbeat, or any other change": {cluster(labels{"kind": "shop"}, "UTC"), cluster(labels{"kind": "shop"}, "UTC"), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			woken = nil
			switch {
			case tc.was == nil:
				handler.Create(t.Context(), event.CreateEvent{Object: tc.is}, queue)
			case tc.is == nil:
				handler.Delete(t.Context(), event.DeleteEvent{Object: tc.was}, queue)
			default:
				handler.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}, queue)
			}
			assert.Equal(t, tc.woken, woken)
		})
	}
	woken = nil
	handler.Create(t.Context(), event.CreateEvent{Object: cluster(nil, ""), IsInInitialList: true}, queue)
	assert.Empty(t, woken, "at the start, each window has a pass anyway")
}
