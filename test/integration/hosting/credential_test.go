package hosting_test

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

//go:embed testdata/addon.yaml
var addOnFile []byte

// in is the metadata of an object of the add-on on the host.
func in(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "beacons", Name: name} }

// exists waits for an object on a cluster.
func exists(t *testing.T, on *suite.Plane, object client.Object) {
	t.Helper()
	suite.Eventually(t, func() error {
		return on.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	})
}

// missing returns why an object exists on a cluster, or is being deleted.
func missing(t *testing.T, on *suite.Plane, object client.Object) error {
	t.Helper()
	err := on.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%T %s is still there: %w", object, object.GetName(), err)
}

// credential waits until the Secret on the host has another certificate than a former one, and works.
func credential(t *testing.T, former []byte) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: in("beacon-hub-kubeconfig")}
	suite.Eventually(t, func() error {
		if err := hostPlane.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		certificate := secret.Data[corev1.TLSCertKey]
		if len(certificate) == 0 || bytes.Equal(certificate, former) {
			return errors.New("there is no new certificate")
		}
		return nil
	})
	loaded, err := clientcmd.Load(secret.Data["kubeconfig"])
	require.NoError(t, err)
	for _, user := range loaded.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData = secret.Data[user.ClientCertificate], secret.Data[user.ClientKey]
		user.ClientCertificate, user.ClientKey = "", ""
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	require.NoError(t, err)
	review := &authenticationv1.SelfSubjectReview{}
	require.NoError(t, suite.NewClient(t, config).Create(t.Context(), review))
	assert.Equal(t, "system:open-cluster-management:cluster:guest:addon:beacon:agent:beacon-agent",
		review.Status.UserInfo.Username)
	return secret
}

// says waits until a condition of the add-on has a status.
func says(t *testing.T, kind string, status metav1.ConditionStatus) {
	t.Helper()
	suite.Eventually(t, func() error {
		addOn, err := plane.AddOns.GetAddOn(t.Context(), client.ObjectKey{Namespace: guest, Name: "beacon"})
		if err != nil {
			return err
		}
		if !meta.IsStatusConditionPresentAndEqual(addOn.Status.Conditions, kind, status) {
			return fmt.Errorf("%s is not %s: %+v", kind, status, addOn.Status.Conditions)
		}
		return nil
	})
}

// Shows: hub/hosted-credential, registration/hosted-mode
func TestAHostedAgentHasItsCredentialWhereItRuns(t *testing.T) {
	require.NoError(t, plane.Apply(t.Context(), addOnFile))
	says(t, addonv1beta1.ManagedClusterAddOnHostingClusterValidity, metav1.ConditionTrue)
	exists(t, hostPlane, &appsv1.Deployment{ObjectMeta: in("beacon")})
	exists(t, guestPlane, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "beacon"}})

	first := credential(t, nil)
	says(t, "ClusterCertificateRotated", metav1.ConditionTrue)
	require.NoError(t, missing(t, guestPlane, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "beacons"}}))
	require.NoError(t, missing(t, guestPlane, &corev1.Secret{ObjectMeta: in("beacon-hub-kubeconfig")}))
	require.NoError(t, missing(t, guestPlane, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: names.NamespaceAgentAddon, Name: "beacon-hub-kubeconfig",
	}}))

	// Nobody approves the renewal.
	second := credential(t, first.Data[corev1.TLSCertKey])
	assert.Equal(t, first.UID, second.UID, "a credential is renewed in its place")

	// While the hook runs, its credential stays and is renewed.
	addOn := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: guest, Name: "beacon"}}
	require.NoError(t, plane.Client.Delete(t.Context(), addOn))
	exists(t, hostPlane, &batchv1.Job{ObjectMeta: in("beacon-goodbye")})
	third := credential(t, second.Data[corev1.TLSCertKey])
	assert.Equal(t, first.UID, third.UID)
	exists(t, hostPlane, &appsv1.Deployment{ObjectMeta: in("beacon")})

	finishHook(t)
	suite.Eventually(t, func() error {
		return errors.Join(missing(t, plane, addOn), missing(t, hostPlane, &corev1.Secret{ObjectMeta: in("beacon-hub-kubeconfig")}),
			missing(t, hostPlane, &appsv1.Deployment{ObjectMeta: in("beacon")}))
	})
	for _, cluster := range []string{host, guest} {
		suite.Eventually(t, func() error {
			var works workv1.ManifestWorkList
			err := plane.Client.List(t.Context(), &works, client.InNamespace(cluster))
			if err == nil && len(works.Items) > 0 {
				err = fmt.Errorf("%d works are left for %s", len(works.Items), cluster)
			}
			return err
		})
	}
}

// finishHook plays the pod of the hook, which succeeds.
func finishHook(t *testing.T) {
	t.Helper()
	suite.Eventually(t, func() error {
		var pods corev1.PodList
		err := hostPlane.Client.List(t.Context(), &pods, client.InNamespace("beacons"),
			client.MatchingLabels{batchv1.JobNameLabel: "beacon-goodbye"})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d pods of the hook", len(pods.Items))
		}
		pods.Items[0].Status.Phase = corev1.PodSucceeded
		return hostPlane.Client.Status().Update(t.Context(), &pods.Items[0])
	})
}
