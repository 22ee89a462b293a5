package approval

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	csrs "github.com/spokelet/spokelet/csr"
)

// The ManagedCluster of an agent was deleted. What its user reads on the cluster names a field of an object that does not
// exist; requests of its add-ons say that there is no ManagedCluster.
func TestAnAgentWhoseClusterIsGoneIsToldSo(t *testing.T) {
	csr := requestFor(t, csrs.ForCluster("c1", "a"), csrs.ClusterUser("c1", "a"))
	r, _ := newReconciler(t, csr)
	_, err := r.Reconcile(t.Context(), requestOf(csr))
	require.NoError(t, err)
	var now certificatesv1.CertificateSigningRequest
	require.NoError(t, r.Live.Get(t.Context(), client.ObjectKeyFromObject(csr), &now))
	comment, found := csrs.CommentOn(&now, csrs.ConditionApprovedByHub)
	require.True(t, found)
	assert.Contains(t, comment.Message, "there is no ManagedCluster", comment.Message)
}
