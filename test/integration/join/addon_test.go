package join_test

import (
	"bytes"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// registerAddon does on a hub what an add-on manager and a person do for an add-on, and returns the certificate that
// the agent stored for it.
func (m *member) registerAddon(h *hubSide) []byte {
	m.t.Helper()
	const addon = "helper"
	namespace := m.name + "-addon"
	err := first.Client.Create(m.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	require.NoError(m.t, client.IgnoreAlreadyExists(err))
	object := &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.name, Name: addon},
		Spec:       addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: namespace},
	}
	require.NoError(m.t, h.Client.Create(m.t.Context(), object))
	after := object.DeepCopy()
	after.Status.Registrations = []addonv1alpha1.RegistrationConfig{{
		SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Subject:    addonv1alpha1.Subject{User: csr.AddonUser(m.name, addon, "a1"), Groups: csr.AddonGroups(m.name, addon)},
	}}
	after.Status.Namespace = namespace
	require.NoError(m.t, h.Client.Status().Patch(m.t.Context(), after, client.MergeFrom(object)))
	before := m.addonCertificate(namespace, addon)
	m.eventually(func() bool { return m.approveAddon(h, addon) }, "a request of the add-on")
	m.eventually(func() bool {
		now := m.addonCertificate(namespace, addon)
		return len(now) > 0 && !bytes.Equal(before, now)
	}, "the credential of the add-on")
	return m.addonCertificate(namespace, addon)
}

// approveAddon approves the requests of an add-on; false when there are none.
func (m *member) approveAddon(h *hubSide, addon string) bool {
	m.t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	require.NoError(m.t, h.Client.List(m.t.Context(), &list, client.MatchingLabels{
		names.LabelClusterName: m.name, names.LabelAddonName: addon,
	}))
	for _, request := range list.Items {
		if csr.Undecided(&request) {
			request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
				Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByTest", Message: "by a person",
			}}
			request.ResourceVersion = "" // the hub may comment on it at the same moment
			require.NoError(m.t, client.IgnoreNotFound(h.Client.SubResource("approval").Update(m.t.Context(), &request)))
		}
	}
	return len(list.Items) > 0
}

func (m *member) addonCertificate(namespace, addon string) []byte {
	m.t.Helper()
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: namespace, Name: addon + "-hub-kubeconfig"}
	err := first.Client.Get(m.t.Context(), key, &secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(m.t, err)
	return secret.Data[csr.KeyCertificate]
}

// deleteBootstrapSecret removes the bootstrap Secret.
func (m *member) deleteBootstrapSecret() {
	m.t.Helper()
	require.NoError(m.t, first.Client.Delete(m.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: names.SecretBootstrap},
	}))
}
