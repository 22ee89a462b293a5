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

// blurred is a hub with a policy and a window that cannot be decoded.
type blurred struct {
	client.Reader
	spec policies.AddOnPolicySpec
}

func (b blurred) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if p, is := into.(*policies.AddOnPolicy); is {
		*p = *policy(b.spec)
	}
	return nil
}

func (blurred) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if _, is := into.(*policies.MaintenanceWindowList); is {
		return &decode.Error{Bad: decode.Bad{Cause: "bad window"}}
	}
	return nil
}

// What the policy says is known, by which a rollout plans, returns and remembers.
//
// Shows: policies/window-undecodable
func TestAWindowThatCannotBeDecodedHoldsWhatWaitsForWindowsAlone(t *testing.T) {
	for sentence, tc := range map[string]struct {
		spec           policies.AddOnPolicySpec
		begins, leaves string
	}{
		"what begins": {begins: "waits for its turn in the rollout: listing MaintenanceWindows: "},
		"a pause is told first": {
			spec: policies.AddOnPolicySpec{Paused: &policies.Pause{Reason: "incident 7"}}, begins: "incident 7",
		},
		"a removal in windows": {
			spec:   policies.AddOnPolicySpec{Removals: policies.RemovalsInWindows},
			begins: "bad window", leaves: "listing MaintenanceWindows: ",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			g, err := (&gate.Reader{Client: blurred{spec: tc.spec}}).Gate(t.Context(), "logs")
			require.NoError(t, err)
			require.NotNil(t, g.Policy())
			assert.False(t, g.Open())
			v := g.Judge(gate.Cluster{}, "c", noon())
			assert.Contains(t, v.Held, tc.begins)
			assert.False(t, v.Unusable, "it is not the matter of one cluster")
			leaves := g.JudgeRemoval(gate.Cluster{}, time.Time{}, noon()).Held
			assert.Equal(t, tc.leaves == "", leaves == "", leaves)
			assert.Contains(t, leaves, tc.leaves)
		})
	}
}
