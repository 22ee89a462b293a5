package messages_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
)

func TestAHostingClusterThatCannotHostIsToldOnTheAddOn(t *testing.T) {
	t.Parallel()
	const validity, invalid = "HostingClusterValidity", "HostingClusterInvalid"
	define(t, "hostless")
	install(t, "hostless", map[string]string{names.AnnotationHostingCluster: "the-host"})
	says(t, "hostless", validity, metav1.ConditionFalse, invalid,
		`There is no ManagedCluster "the-host"`, "Correct the annotation, or register that cluster.")

	host := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "the-host"}}
	require.NoError(t, plane.Client.Create(t.Context(), host))
	says(t, "hostless", validity, metav1.ConditionFalse, invalid,
		"The hub does not accept cluster the-host", "Set spec.hubAcceptsClient of the ManagedCluster to true, or name another")

	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`))
	require.NoError(t, plane.Client.Patch(t.Context(), host, patch))
	says(t, "hostless", validity, metav1.ConditionTrue, "HostingClusterValid")
	require.NoError(t, plane.Client.Delete(t.Context(), host))
	says(t, "hostless", validity, metav1.ConditionFalse, invalid, "Correct the annotation, or register that cluster.")
}
