package attacks_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	tokens "github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/test/suite"
)

// reset holds what a client sends to have the API server forget who wrote which field, after which it records nothing.
func reset() []metav1.ManagedFieldsEntry { return []metav1.ManagedFieldsEntry{{}} }

// manyFinalizers are as long as a work can be.
func manyFinalizers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("a/%06d", i))
	}
	return all
}

// A full work can be neither changed nor deleted, by whomever: the API server has no room for the time of the deletion.
// Shows: security/filled-objects
func TestAnAgentCannotFillAWorkUpByFinalizers(t *testing.T) {
	work := &workv1.ManifestWork{ObjectMeta: in("cluster10", "filled-up")}
	createForTest(t, work)
	for sentence, c := range map[string]struct {
		finalizers int
		fields     []metav1.ManagedFieldsEntry
	}{
		"with the fields that the API server records": {10_000, nil}, "with the fields reset": {100_000, reset()},
	} {
		t.Run(sentence, func(t *testing.T) {
			var fresh workv1.ManifestWork
			require.NoError(t, shared.clients[agent10].Get(t.Context(), client.ObjectKeyFromObject(work), &fresh))
			fresh.Finalizers = manyFinalizers(c.finalizers)
			if c.fields != nil {
				fresh.ManagedFields = c.fields
			}
			err := client.NewDryRunClient(shared.clients[agent10]).Update(t.Context(), &fresh)
			require.ErrorContains(t, err, "ValidatingAdmissionPolicy")
		})
	}
}

// Shows: security/filled-objects
func TestAnAgentCannotKeepItsLeaseForEver(t *testing.T) {
	lease := &coordinationv1.Lease{ObjectMeta: in("cluster10", names.LeaseCluster)}
	suite.Eventually(t, func() error { return get(lease.DeepCopy())(t.Context(), shared.admin) })
	dry := client.NewDryRunClient(shared.clients[agent10])
	renew := func(l *coordinationv1.Lease) { l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()} }
	require.NoError(t, update(lease, renew)(t.Context(), dry))
	err := update(lease, func(l *coordinationv1.Lease) { l.Finalizers = []string{"example.com/for-ever"} })(t.Context(), dry)
	require.ErrorContains(t, err, "ValidatingAdmissionPolicy 'hub-agent-leases.spokelet.io'")
}

// An agent has its own finalizer, however many others have.
func TestAnAgentAddsItsFinalizerBesideThoseOfOthers(t *testing.T) {
	work := &workv1.ManifestWork{ObjectMeta: in("cluster10", "with-finalizers")}
	work.Finalizers = manyFinalizers(20)
	createForTest(t, work)
	t.Cleanup(func() {
		require.NoError(t, change(work.DeepCopy(), `{"metadata":{"finalizers":null}}`)(context.Background(), shared.admin))
	})
	dry := client.NewDryRunClient(shared.clients[agent10])
	for sentence, finalizers := range map[string][]string{
		"it adds its own":      append(manyFinalizers(20), names.FinalizerManifestWork),
		"it takes others away": manyFinalizers(18),
	} {
		err := update(work, func(w *workv1.ManifestWork) { w.Finalizers = finalizers })(t.Context(), dry)
		require.NoError(t, err, sentence)
	}
	for sentence, finalizers := range map[string][]string{
		"it adds another": manyFinalizers(21), "it adds one twice": append(manyFinalizers(20), "a/000000"),
		"it replaces one by another": append(manyFinalizers(19), "b/long"),
	} {
		err := update(work, func(w *workv1.ManifestWork) { w.Finalizers = finalizers })(t.Context(), dry)
		require.ErrorContains(t, err, policyAgentWorks, sentence)
	}
}

// inUse is the number of bytes of the heap that are in use.
func inUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// The hub manager runs in this process. A request of some 300 KB takes 10 MB for as long as the account is there; 45 of
// them are more than the limit of the hub manager, also after each restart.
// Shows: security/filled-objects
func TestATenantCannotFillTheHubManagerByServiceAccounts(t *testing.T) {
	const accounts, each = 6, 1 << 20 // All else that the process takes meanwhile is some 3 MiB.
	honest(t)
	before := inUse()
	for n := range accounts {
		account := &corev1.ServiceAccount{ObjectMeta: in("cluster1", fmt.Sprint("large-", n))}
		account.Labels = map[string]string{tokens.LabelInfrastructure: "true"}
		account.Secrets = make([]corev1.ObjectReference, 95_000)
		require.NoError(t, shared.clients[namespaceAdmin].Create(t.Context(), account))
		deleteAfterwards(t, &corev1.ServiceAccount{ObjectMeta: in("cluster1", account.Name)})
	}
	honest(t) // after these requests, the hub manager knows of the accounts
	assert.Less(t, inUse()-before, int64(accounts*each))
}
