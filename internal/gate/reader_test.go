package gate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// A window that touches or overlaps itself is one: it does not begin again while it lasts, and the status must not name
// an instant that passes before the next look.
func TestTheStatusOfAWindowNamesNoInstantThatPassesBeforeTheNextLook(t *testing.T) {
	for _, w := range []policies.MaintenanceWindow{
		window("day", "Deny", "0 1 * * *", 24*time.Hour), window("hours", "Deny", "0 * * * *", time.Hour),
		window("minutes", "Deny", "* * * * *", time.Minute), window("night", "Allow", "0 1 * * *", time.Hour),
	} {
		status, wake := gate.Report(&w, []gate.Cluster{{}}, noon())
		if status.NextStart != nil {
			assert.False(t, wake.After(status.NextStart.Time), "%s: nextStart %s is past until %s", w.Name, status.NextStart, wake)
		}
	}
}

func TestAWindowThatCannotBeUsedSaysSoWithoutClusters(t *testing.T) {
	w := window("x", "Allow", "bad", time.Hour)
	status, _ := gate.Report(&w, nil, noon())
	assert.NotEmpty(t, status.Problem)
}

// undecodable is a hub with a window that denies shops, and a cluster that cannot be decoded.
type undecodable struct{ client.Reader }

func (undecodable) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if _, is := into.(*clusterv1.ManagedCluster); is {
		return &decode.Error{Bad: decode.Bad{Cause: "bad"}}
	}
	return nil
}

// What a window means there is not known, as with a window that cannot be used.
func TestAClusterThatCannotBeDecodedDoesNotBeginToChange(t *testing.T) {
	c, err := (&gate.Reader{Client: undecodable{}}).Cluster(t.Context(), "a")
	require.NoError(t, err)
	g := gate.New("logs", nil, []policies.MaintenanceWindow{
		window("x", "Deny", "* * * * *", time.Hour, labelled(map[string]string{"kind": "shop"})),
	})
	v := g.Judge(c, "c", noon())
	assert.Contains(t, v.Held, "its ManagedCluster cannot be decoded")
	assert.True(t, v.Unusable, "nobody knows for how long, so later groups do not wait for it")
}
