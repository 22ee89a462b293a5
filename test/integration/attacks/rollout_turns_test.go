package attacks_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applied reports the work of an add-on as applied, and as available or not.
func applied(ctx context.Context, cluster, addOn string, available metav1.ConditionStatus) error {
	agent := shared.clients[who("the agent of "+cluster)]
	var work workv1.ManifestWork
	if err := agent.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "addon-" + addOn + "-deploy-0"}, &work); err != nil {
		return err
	}
	before := work.DeepCopy()
	for kind, status := range map[string]metav1.ConditionStatus{
		workv1.WorkApplied: metav1.ConditionTrue, workv1.WorkAvailable: available,
	} {
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: "Reported", ObservedGeneration: work.Generation,
		})
	}
	return agent.Status().Patch(ctx, &work, client.MergeFrom(before))
}

// One cluster at a time. Each has five seconds and then soaks for ten, and counts for nothing where it fails. The agent
// of the first says in turns that its work is available, and that it is not.
//
// Shows: hub/rollout-turns
func TestAnAgentHoldsNoRolloutByTurns(t *testing.T) {
	const addOn, bad, good = "turns", "turns-a-evil", "turns-b-honest"
	joins(t, addOn, bad)
	paced(t, addOn, addOn)
	require.NoError(t, change(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: in("", addOn)},
		`{"spec":{"installStrategy":{"type":"Placements","placements":[{"name":"paced","namespace":"`+addOn+`","rolloutStrategy":`+
			`{"type":"Progressive","progressive":{"maxConcurrency":1,"maxFailures":"100%","progressDeadline":"5s",`+
			`"minSuccessTime":"10s"}}}]}}}`)(t.Context(), shared.admin))
	deployed(t, bad, addOn, addOn)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		turn := time.NewTicker(3 * time.Second)
		defer turn.Stop()
		for status, next := metav1.ConditionTrue, metav1.ConditionFalse; ctx.Err() == nil; status, next = next, status {
			_ = applied(ctx, bad, addOn, status)
			select {
			case <-ctx.Done():
			case <-turn.C:
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	joins(t, addOn, good)
	deployed(t, good, addOn, addOn)
}
