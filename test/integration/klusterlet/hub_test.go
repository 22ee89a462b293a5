package klusterlet_test

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// requests returns the certificate requests of the cluster, or of an add-on of it.
func (k *klusterlet) requests(addon string) []certificatesv1.CertificateSigningRequest {
	k.t.Helper()
	var list certificatesv1.CertificateSigningRequestList
	require.NoError(k.t, plane.Client.List(k.t.Context(), &list, client.MatchingLabels{names.LabelClusterName: k.name}))
	var found []certificatesv1.CertificateSigningRequest
	for _, request := range list.Items {
		if request.Labels[names.LabelAddonName] == addon {
			found = append(found, request)
		}
	}
	return found
}

// approve waits for a request and approves it, as a person does.
func (k *klusterlet) approve(addon string) {
	k.t.Helper()
	k.eventually(func() bool { return len(k.requests(addon)) > 0 }, "a certificate request of %q", addon)
	for _, request := range k.requests(addon) {
		if !csr.Undecided(&request) {
			continue
		}
		request.ResourceVersion = "" // the hub manager may be writing why it leaves the request alone
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByTest", Message: "by a person",
		}}
		require.NoError(k.t, client.IgnoreNotFound(plane.Client.SubResource("approval").Update(k.t.Context(), &request)))
	}
}

// admit does all that people do for a cluster that joins, and waits until it did.
func (k *klusterlet) admit() {
	k.t.Helper()
	k.approve("")
	key := types.NamespacedName{Name: k.name}
	var found clusterv1.ManagedCluster
	k.eventually(func() bool { return plane.Client.Get(k.t.Context(), key, &found) == nil }, "the ManagedCluster")
	require.NoError(k.t, plane.Client.Patch(k.t.Context(), &found,
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true,"leaseDurationSeconds":5}}`))))
	for _, kind := range []string{clusterv1.ManagedClusterConditionJoined, clusterv1.ManagedClusterConditionAvailable} {
		k.eventually(func() bool {
			return plane.Client.Get(k.t.Context(), key, &found) == nil && meta.IsStatusConditionTrue(found.Status.Conditions, kind)
		}, "condition %s of the ManagedCluster", kind)
	}
}

// awaitClaim makes a claim of the cluster and waits until the hub shows it.
func (k *klusterlet) awaitClaim() {
	k.t.Helper()
	claim := &clusterv1alpha1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Name: k.name}, Spec: clusterv1alpha1.ClusterClaimSpec{Value: "claimed"},
	}
	require.NoError(k.t, k.spoke.Client.Create(k.t.Context(), claim))
	k.eventually(func() bool {
		var found clusterv1.ManagedCluster
		require.NoError(k.t, plane.Client.Get(k.t.Context(), types.NamespacedName{Name: k.name}, &found))
		return slices.Contains(found.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: k.name, Value: "claimed"})
	}, "the claim on the hub")
}

// registerAddon does on the hub what an add-on manager and a person do for an add-on, and waits for its credential on
// the managed cluster.
func (k *klusterlet) registerAddon(addon string) {
	k.t.Helper()
	k.registerAt(k.spoke, k.there, addon, nil)
}

// registerHosted does the same for an add-on that runs on the hosting cluster.
func (k *klusterlet) registerHosted(addon string) {
	k.t.Helper()
	k.registerAt(plane, k.namespace, addon, map[string]string{names.AnnotationHostingCluster: "host"})
}

func (k *klusterlet) registerAt(cluster *suite.Plane, namespace, addon string, annotations map[string]string) {
	k.t.Helper()
	object := &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.name, Name: addon, Annotations: annotations},
		Spec:       addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: namespace},
	}
	require.NoError(k.t, plane.Client.Create(k.t.Context(), object))
	after := object.DeepCopy()
	after.Status.Registrations = []addonv1alpha1.RegistrationConfig{{
		SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Subject:    addonv1alpha1.Subject{User: csr.AddonUser(k.name, addon, "a1"), Groups: csr.AddonGroups(k.name, addon)},
	}}
	after.Status.Namespace = namespace
	require.NoError(k.t, plane.Client.Status().Patch(k.t.Context(), after, client.MergeFrom(object)))
	k.approve(addon)
	k.eventually(func() bool {
		var secret corev1.Secret
		key := client.ObjectKey{Namespace: namespace, Name: addon + "-hub-kubeconfig"}
		return cluster.Client.Get(k.t.Context(), key, &secret) == nil && len(secret.Data[csr.KeyCertificate]) > 0 &&
			len(secret.Data[csr.KeyKubeconfig]) > 0
	}, "the credential of the add-on")
}

// work creates a ManifestWork with a ConfigMap of the same name.
func (k *klusterlet) work(name string) {
	k.t.Helper()
	raw := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,"name":%q}}`, k.there, name)
	require.NoError(k.t, plane.Client.Create(k.t.Context(), &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.name, Name: name},
		Spec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{
			Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}},
		}},
	}))
}

// awaitApplied waits until a work is applied and its ConfigMap there.
func (k *klusterlet) awaitApplied(name string) {
	k.t.Helper()
	k.eventually(func() bool {
		var found workv1.ManifestWork
		err := plane.Client.Get(k.t.Context(), client.ObjectKey{Namespace: k.name, Name: name}, &found)
		return err == nil && meta.IsStatusConditionTrue(found.Status.Conditions, workv1.WorkAvailable)
	}, "work %s is available", name)
	require.True(k.t, k.configMap(name))
}

// configMap reports whether a ConfigMap is there.
func (k *klusterlet) configMap(name string) bool {
	k.t.Helper()
	var found corev1.ConfigMap
	err := k.spoke.Client.Get(k.t.Context(), client.ObjectKey{Namespace: k.there, Name: name}, &found)
	require.NoError(k.t, client.IgnoreNotFound(err))
	return err == nil
}

// removed deletes a ConfigMap of a work on the cluster, and waits until the agent has made it again.
func (k *klusterlet) removed(name string) {
	k.t.Helper()
	require.NoError(k.t, k.spoke.Client.Delete(k.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.there, Name: name},
	}))
	k.eventually(func() bool { return k.configMap(name) }, "%s is made again", name)
}

// replaceCertificate loses the certificate of the stored credential, and waits until registration has got another one.
func (k *klusterlet) replaceCertificate() {
	k.t.Helper()
	key := client.ObjectKey{Namespace: k.namespace, Name: "hub-kubeconfig-secret"}
	var secret corev1.Secret
	require.NoError(k.t, plane.Client.Get(k.t.Context(), key, &secret))
	require.NoError(k.t, plane.Client.Patch(k.t.Context(), &secret,
		client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/data/tls.crt"}]`))))
	k.eventually(func() bool {
		return plane.Client.Get(k.t.Context(), key, &secret) == nil && len(secret.Data[csr.KeyCertificate]) > 0
	}, "another certificate is stored")
}

// holders returns who holds which Lease in the namespace of the agents; nobody where it was released.
func (k *klusterlet) holders() map[string]string {
	k.t.Helper()
	var list coordinationv1.LeaseList
	require.NoError(k.t, plane.Client.List(k.t.Context(), &list, client.InNamespace(k.namespace)))
	found := map[string]string{}
	for _, lease := range list.Items {
		found[lease.Name] = ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	return found
}
