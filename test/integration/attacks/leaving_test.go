package attacks_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/lease"
	"github.com/spokelet/spokelet/test/suite"
)

// leaving is the agent of a cluster that an administrator deletes.
const leaving who = "the agent of a cluster that is deleted"

// The condition Deleting tells the hub manager that it found nothing left, and the agent may write it, too. A Lease with
// a finalizer of the agent stays.
func TestAnAgentCannotKeepItsRightsByItsStatusOrItsLease(t *testing.T) {
	ctx := t.Context()
	require.NoError(t, shared.join(ctx, "leaving", leaving))
	agent := shared.clients[leaving]
	require.NoError(t, changeStatus(newCluster("leaving"), `{"status":{"conditions":[{"type":"Deleting","status":"True",`+
		`"reason":"NoResource","message":"","lastTransitionTime":"2026-11-23T00:00:00Z"}]}}`)(ctx, agent))
	kept := &coordinationv1.Lease{ObjectMeta: in("leaving", lease.ClusterLease)}
	suite.Eventually(t, func() error { return agent.Get(ctx, client.ObjectKeyFromObject(kept), kept) })
	const finalizer = `{"metadata":{"finalizers":["example.com/for-ever"]}}`
	forEver := kept.DeepCopy()
	forEver.Finalizers = []string{"example.com/for-ever"}
	require.ErrorContains(t, agent.Update(ctx, forEver), "hub-agent-leases")
	// It may be older than the policy.
	require.NoError(t, shared.admin.Patch(ctx, kept, client.RawPatch("application/merge-patch+json", []byte(finalizer))))
	require.NoError(t, shared.admin.Delete(ctx, newCluster("leaving")))
	t.Cleanup(func() {
		forget := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		_ = shared.admin.Patch(context.WithoutCancel(ctx), kept, forget)
	})
	suite.Eventually(t, func() error {
		if err := shared.admin.Get(ctx, client.ObjectKey{Name: "leaving"}, &clusterv1.ManagedCluster{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the cluster is still there: %w", err)
		}
		var role rbacv1.ClusterRole
		if err := shared.admin.Get(ctx, client.ObjectKey{Name: names.RolePrefixCluster + "leaving"}, &role); !apierrors.IsNotFound(err) {
			return fmt.Errorf("its role is still there: %w", err)
		}
		err := agent.List(ctx, &workv1.ManifestWorkList{}, client.InNamespace("leaving"))
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("its agent reads works: %w", err)
		}
		return nil
	})
}
