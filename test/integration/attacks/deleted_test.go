package attacks_test

import (
	"context"
	"fmt"
	"testing"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/suite"
)

// The owner deletes the cluster. Its agent says itself that nothing is left, all the time.
//
// Shows: security/deleted-cluster-ends
func TestAnAgentKeepsNoRightsByReportingItsDeletion(t *testing.T) {
	for _, tc := range []struct{ cluster, conditions string }{
		{"vdone-control", ""},
		{"vdone-evil", `,"conditions":[{"type":"Deleting","status":"True","reason":"NoResource","message":"v","lastTransitionTime":"2026-11-28T00:00:00Z"}]`},
	} {
		t.Run(tc.cluster, func(t *testing.T) {
			require.NoError(t, shared.join(t.Context(), tc.cluster, who("the agent of "+tc.cluster)))
			agent := shared.clients[who("the agent of "+tc.cluster)]
			stop := floods(t, 4, func(ctx context.Context, n int64) error {
				return changeStatus(newCluster(tc.cluster), fmt.Sprintf(`{"status":{"capacity":{"v":"%d"}%s}}`, n, tc.conditions))(ctx, agent)
			})
			require.NoError(t, shared.admin.Delete(t.Context(), newCluster(tc.cluster)))
			suite.Eventually(t, func() error {
				var c clusterv1.ManagedCluster
				err := shared.admin.Get(t.Context(), client.ObjectKey{Name: tc.cluster}, &c)
				may := agent.List(t.Context(), &workv1.ManifestWorkList{}, client.InNamespace(tc.cluster))
				if !apierrors.IsNotFound(err) || !apierrors.IsForbidden(may) {
					return fmt.Errorf("the cluster is there: %v %v %v, accepted %t; the agent lists works: %v", fmt.Sprint(err), c.Finalizers, c.Status.Conditions, c.Spec.HubAcceptsClient, fmt.Sprint(may))
				}
				return nil
			})
			stop()
		})
	}
}

// A cluster is being deleted and its agent keeps a work. Then a person denies it.
// The agent keeps its cluster by a finalizer of its own on a work.
//
// Shows: security/deleted-cluster-ends
func TestADenialEndsTheRightsOfAClusterThatIsBeingDeleted(t *testing.T) {
	const bad = "vkept-evil"
	require.NoError(t, shared.join(t.Context(), bad, who("the agent of "+bad)))
	agent := shared.clients[who("the agent of "+bad)]
	kept := &workv1.ManifestWork{ObjectMeta: in(bad, "kept"), Spec: workv1.ManifestWorkSpec{
		Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{}}},
	}}
	kept.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`)
	require.NoError(t, shared.admin.Create(t.Context(), kept))
	suite.Eventually(t, func() error {
		return change(&workv1.ManifestWork{ObjectMeta: in(bad, "kept")}, `{"metadata":{"finalizers":["evil.example.com/stay"]}}`)(t.Context(), agent)
	})
	require.NoError(t, shared.admin.Delete(t.Context(), newCluster(bad)))
	require.NoError(t, shared.accept(t.Context(), bad, false))
	suite.Eventually(t, func() error {
		err := changeStatus(newCluster(bad), `{"status":{"capacity":{"v":"1"}}}`)(t.Context(), agent)
		addOns := agent.List(t.Context(), &addonv1alpha1.ManagedClusterAddOnList{}, client.InNamespace(bad))
		if !apierrors.IsForbidden(err) || !apierrors.IsForbidden(addOns) {
			return fmt.Errorf("it writes its status: %v; it lists add-ons: %v", fmt.Sprint(err), fmt.Sprint(addOns))
		}
		return nil
	})
}
