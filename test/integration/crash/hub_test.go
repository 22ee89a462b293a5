package crash_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// signer is the custom signer of the add-on.
const signer = "crash.example.com/signer"

// installAddon does what the manager of an add-on does on the hub: it makes the add-on, and says with what it
// registers.
func installAddon(ctx context.Context, hub client.Client, cluster, namespace string) error {
	addon := &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: named(cluster, addonName), Spec: addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: namespace},
	}
	if err := hub.Create(ctx, addon); err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(addon), addon); err != nil {
			return err
		}
		subject := addonv1alpha1.Subject{
			User: csr.AddonUser(cluster, addonName, addonName), Groups: csr.AddonGroups(cluster, addonName),
		}
		addon.Status.Namespace = namespace
		addon.Status.Registrations = []addonv1alpha1.RegistrationConfig{
			{SignerName: certificatesv1.KubeAPIServerClientSignerName, Subject: subject},
			{SignerName: signer, Subject: subject},
		}
		meta.SetStatusCondition(&addon.Status.Conditions, metav1.Condition{
			Type: addonv1beta1.ManagedClusterAddOnRegistrationApplied, Status: metav1.ConditionTrue,
			Reason: "SetPermissionApplied", Message: "Registration of the addon agent is configured",
		})
		return hub.Status().Update(ctx, addon)
	})
}

// serveRequests approves the requests of add-ons and signs those of the custom signer, until the test ends: the part of
// the hub that these tests are not about.
func serveRequests(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		for {
			if err := serveOnce(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				t.Errorf("serving the certificate requests of add-ons: %v", err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
}

func serveOnce(ctx context.Context) error {
	var all certificatesv1.CertificateSigningRequestList
	if err := shared.HubClient.List(ctx, &all, client.HasLabels{names.LabelAddonName}); err != nil {
		return err
	}
	for i := range all.Items {
		request := &all.Items[i]
		if csr.Undecided(request) {
			request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
				Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
			}}
			if err := shared.HubClient.SubResource("approval").Update(ctx, request); err != nil {
				return err
			}
		}
		if request.Spec.SignerName != signer || len(request.Status.Certificate) > 0 {
			continue
		}
		certificate, err := shared.Hub.SignRequest(request.Spec.Request, time.Now(), time.Now().Add(24*time.Hour))
		if err != nil {
			return fmt.Errorf("signing %s: %w", request.Name, err)
		}
		request.Status.Certificate = certificate
		if err := shared.HubClient.Status().Update(ctx, request); err != nil {
			return err
		}
	}
	return nil
}

// requests returns the certificate requests of a cluster and its add-on.
func requests(ctx context.Context, cluster string) ([]certificatesv1.CertificateSigningRequest, error) {
	var all certificatesv1.CertificateSigningRequestList
	err := shared.HubClient.List(ctx, &all, client.MatchingLabels{names.LabelClusterName: cluster})
	return all.Items, err
}
