package admission_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// A namespace is restored from a backup, or applied from a copy, of the time in which its cluster was denied. The
// cluster is accepted now, and was accepted already.
func TestARecordOfADenialThatIsNotTrueGoes(t *testing.T) {
	t.Parallel()
	const name = "restored"
	accepted(t, name)
	agent(t, name) // all rights are there, so the last pass about the cluster is over
	var namespace corev1.Namespace
	require.NoError(t, plane.Client.Get(t.Context(), types.NamespacedName{Name: name}, &namespace))
	before := namespace.DeepCopy()
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, names.AnnotationDeniedOn, "2026-01-01T00:00:00Z")
	require.NoError(t, plane.Client.Patch(t.Context(), &namespace, client.MergeFrom(before)))

	suite.Eventually(t, func() error {
		if err := plane.Client.Get(t.Context(), types.NamespacedName{Name: name}, &namespace); err != nil {
			return err
		}
		if _, denied := namespace.Annotations[names.AnnotationDeniedOn]; denied {
			return fmt.Errorf("nobody can write works for the accepted cluster: %w", plane.Client.Create(t.Context(),
				&workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "w"}}))
		}
		return nil
	})
}

// Whatever keeps the namespaces of the hub takes away the annotation, which it does not know.
func TestTheRecordOfADenialComesBack(t *testing.T) {
	t.Parallel()
	const name = "stripped"
	accepted(t, name)
	require.NoError(t, change(t, plane.Client, name, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = false }))
	var namespace corev1.Namespace
	noted := func() error {
		if err := plane.Client.Get(t.Context(), types.NamespacedName{Name: name}, &namespace); err != nil {
			return err
		}
		if namespace.Annotations[names.AnnotationDeniedOn] == "" {
			return errors.New("the namespace of the denied cluster does not say so, and everybody may write works there")
		}
		return nil
	}
	suite.Eventually(t, noted)
	becomes(t, name, conditioned(metav1.ConditionFalse))
	before := namespace.DeepCopy()
	delete(namespace.Annotations, names.AnnotationDeniedOn)
	require.NoError(t, plane.Client.Patch(t.Context(), &namespace, client.MergeFrom(before)))
	suite.Eventually(t, noted)
}
