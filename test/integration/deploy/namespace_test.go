package deploy_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// TestTheNamespaceOfAClusterIsForItsAgentsOnly makes a namespace that of a cluster in which agents of other clusters have
// a role, and then enables the add-on there.
//
// Shows: hub/namespace-of-a-cluster, hub/freed-namespace
func TestTheNamespaceOfAClusterIsForItsAgentsOnly(t *testing.T) {
	t.Parallel()
	const name = "open-cluster-management:joined:role:agent"
	f := install(t, "joined")
	f.condition(t, "RegistrationApplied", metav1.ConditionTrue, "SetPermissionApplied")
	ofOther := binding(t.Context(), "joined-shared", name+":cluster:"+f.cluster)
	require.NotNil(t, ofOther)

	// Everybody with a bootstrap credential creates clusters; the hub labels a namespace only with a person's consent.
	require.NoError(t, plane.Client.Create(t.Context(), &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "joined-shared"}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}))
	f.atRest(t)
	require.NotNil(t, binding(t.Context(), "joined-shared", ofOther.Name), "the name of a cluster takes nothing away")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "joined-shared"}}
	require.NoError(t, plane.Client.Patch(t.Context(), namespace, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+names.LabelClusterName+`":"joined-shared"}}}`))))
	suite.Eventually(t, func() error {
		if b := binding(t.Context(), "joined-shared", ofOther.Name); b != nil {
			return errors.New("an agent of another cluster still has a role in the namespace of a cluster")
		}
		return nil
	})
	message := f.condition(t, "RegistrationApplied", metav1.ConditionFalse, "SetPermissionFailed").Message
	assert.Contains(t, message, "namespace joined-shared, which is the namespace of a managed cluster")
	assert.NotNil(t, binding(t.Context(), f.cluster, "open-cluster-management:joined:clusterrole:agent"),
		"what the agent has already stays")

	own := fixture{addOn: "joined", cluster: "joined-shared"}
	own.enable(t)
	own.condition(t, "RegistrationApplied", metav1.ConditionTrue, "SetPermissionApplied")
	suite.Eventually(t, func() error {
		b := binding(t.Context(), "joined-shared", name)
		if b == nil {
			return errors.New("the agent of the cluster has no role in its namespace")
		}
		group := "system:open-cluster-management:cluster:joined-shared:addon:joined"
		if len(b.Subjects) != 1 || b.Subjects[0].Name != group || b.OwnerReferences[0].Kind != "ManagedClusterAddOn" {
			return fmt.Errorf("the binding is for %v, owned by %v", b.Subjects, b.OwnerReferences)
		}
		return nil
	})
	f.atRest(t)
	own.atRest(t)

	// No object of the add-on changes when the namespace is nobody's again; its agent gets the role all the same.
	require.NoError(t, plane.Client.Patch(t.Context(), namespace, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+names.LabelClusterName+`":null}}}`))))
	f.condition(t, "RegistrationApplied", metav1.ConditionTrue, "SetPermissionApplied")
	require.NotNil(t, binding(t.Context(), "joined-shared", ofOther.Name))
}
