package conversion_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: hub/both-versions
func TestAddOnIsTheSameInBothVersions(t *testing.T) {
	ctx, namespace := t.Context(), newNamespace(t)
	alpha := &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: namespace, Annotations: map[string]string{"mine": "kept"}},
		Spec: addonv1alpha1.ManagedClusterAddOnSpec{
			InstallNamespace: "somewhere",
			Configs: []addonv1alpha1.AddOnConfig{{
				ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "r"},
				ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "n"},
			}},
		},
	}
	require.NoError(t, admin.Create(ctx, alpha))
	beta := &addonv1beta1.ManagedClusterAddOn{}
	require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(alpha), beta))
	assert.Equal(t, map[string]string{"mine": "kept", names.AnnotationInstallNamespace: "somewhere"}, beta.Annotations)
	assert.Equal(t, "n", beta.Spec.Configs[0].Name)

	// A status written in v1beta1 is read in v1alpha1.
	beta.Status.Registrations = []addonv1beta1.RegistrationConfig{{
		Type: addonv1beta1.KubeClient,
		KubeClient: &addonv1beta1.KubeClientConfig{
			Driver:  "token",
			Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: "u", Groups: []string{"g"}}},
		},
	}}
	beta.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "g", Resource: "r"},
		DesiredConfig: &addonv1beta1.ConfigSpecHash{
			ConfigReferent: addonv1beta1.ConfigReferent{Namespace: "ns", Name: "n"}, SpecHash: "h",
		},
	}}
	require.NoError(t, admin.Status().Update(ctx, beta))
	require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(alpha), alpha))
	assert.Equal(t, "token", alpha.Status.KubeClientDriver)
	assert.Equal(t, "kubernetes.io/kube-apiserver-client", alpha.Status.Registrations[0].SignerName)
	assert.Equal(t, addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "n"}, alpha.Status.ConfigReferences[0].ConfigReferent)
	assert.Equal(t, "somewhere", alpha.Spec.InstallNamespace)

	// A spec written in v1beta1 keeps what only v1alpha1 has, and the status.
	beta.Spec.Configs = nil
	beta.Annotations["mine"] = "changed"
	require.NoError(t, admin.Update(ctx, beta))
	require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(alpha), alpha))
	assert.Equal(t, addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: "somewhere"}, alpha.Spec)
	assert.Equal(t, map[string]string{"mine": "changed"}, alpha.Annotations)
	assert.Equal(t, "token", alpha.Status.KubeClientDriver)

	// A status written in v1alpha1 is read in v1beta1.
	alpha.Status.KubeClientDriver = "csr"
	alpha.Status.HealthCheck.Mode = addonv1alpha1.HealthCheckModeCustomized
	require.NoError(t, admin.Status().Update(ctx, alpha))
	require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(alpha), beta))
	assert.Equal(t, "csr", beta.Status.Registrations[0].KubeClient.Driver)
	assert.Equal(t, addonv1beta1.HealthCheckModeCustomized, beta.Status.HealthCheck.Mode)

	require.NoError(t, admin.Delete(ctx, beta))
	assert.True(t, apierrors.IsNotFound(admin.Get(ctx, client.ObjectKeyFromObject(alpha), alpha)))
}

// Shows: hub/both-versions
func TestAddOnCreatedInBeta(t *testing.T) {
	ctx, namespace := t.Context(), newNamespace(t)
	tests := map[string]struct {
		annotations map[string]string
		want        string
	}{
		"plain":      {want: "open-cluster-management-agent-addon"},
		"with-place": {annotations: map[string]string{names.AnnotationInstallNamespace: "somewhere"}, want: "somewhere"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			beta := &addonv1beta1.ManagedClusterAddOn{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: test.annotations},
			}
			require.NoError(t, admin.Create(ctx, beta))
			alpha := &addonv1alpha1.ManagedClusterAddOn{}
			require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(beta), alpha))
			assert.Equal(t, test.want, alpha.Spec.InstallNamespace)
			assert.Empty(t, alpha.Annotations)
			require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(beta), beta))
			assert.Equal(t, map[string]string{names.AnnotationInstallNamespace: test.want}, beta.Annotations)
		})
	}
}

// Shows: hub/both-versions
func TestManagementIsTheSameInBothVersions(t *testing.T) {
	ctx := t.Context()
	alpha := &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: "from-alpha"},
		Spec: addonv1alpha1.ClusterManagementAddOnSpec{
			AddOnConfiguration: addonv1alpha1.ConfigCoordinates{CRDName: "crd"},
			InstallStrategy:    addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual},
			SupportedConfigs: []addonv1alpha1.ConfigMeta{
				{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "without"}},
				{
					ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: "g", Resource: "with"},
					DefaultConfig:       &addonv1alpha1.ConfigReferent{Name: "n"},
				},
			},
		},
	}
	require.NoError(t, admin.Create(ctx, alpha))
	beta := &addonv1beta1.ClusterManagementAddOn{}
	require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(alpha), beta))
	require.Len(t, beta.Spec.DefaultConfigs, 2)
	assert.Equal(t, addonapi.ReservedNoDefault, beta.Spec.DefaultConfigs[0].Name)
	assert.Equal(t, "n", beta.Spec.DefaultConfigs[1].Name)
	assert.Equal(t, addonv1beta1.AddonInstallStrategyManual, beta.Spec.InstallStrategy.Type)

	// An edit in v1beta1 keeps what v1beta1 cannot say, and stores no trace of how.
	beta.Spec.AddOnMeta.DisplayName = "Hello"
	require.NoError(t, admin.Update(ctx, beta))
	require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(alpha), alpha))
	assert.Equal(t, "Hello", alpha.Spec.AddOnMeta.DisplayName)
	assert.Equal(t, "crd", alpha.Spec.AddOnConfiguration.CRDName)
	assert.Nil(t, alpha.Spec.SupportedConfigs[0].DefaultConfig)
	assert.Empty(t, alpha.Annotations)

	beta.Status.DefaultConfigReferences = []addonv1beta1.DefaultConfigReference{{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "g", Resource: "with"},
		DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: "n"}, SpecHash: "h"},
	}}
	require.NoError(t, admin.Status().Update(ctx, beta))
	require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(alpha), alpha))
	require.Len(t, alpha.Status.DefaultConfigReferences, 1)
	assert.Equal(t, "h", alpha.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash)

	alpha.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash = "h2"
	require.NoError(t, admin.Status().Update(ctx, alpha))
	require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(alpha), beta))
	assert.Equal(t, "h2", beta.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash)
}

// Shows: hub/both-versions
func TestManagementCreatedInBeta(t *testing.T) {
	ctx := t.Context()
	beta := &addonv1beta1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: "from-beta"},
		Spec: addonv1beta1.ClusterManagementAddOnSpec{
			DefaultConfigs: []addonv1beta1.AddOnConfig{{
				ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "configmaps"},
				ConfigReferent:      addonv1beta1.ConfigReferent{Name: addonapi.ReservedNoDefault},
			}},
			InstallStrategy: addonv1beta1.InstallStrategy{
				Type: addonv1beta1.AddonInstallStrategyPlacements,
				Placements: []addonv1beta1.PlacementStrategy{{
					PlacementRef: addonv1beta1.PlacementRef{Namespace: "ns", Name: "p"},
				}},
			},
		},
	}
	require.NoError(t, admin.Create(ctx, beta))
	alpha := &addonv1alpha1.ClusterManagementAddOn{}
	require.NoError(t, admin.Get(ctx, client.ObjectKeyFromObject(beta), alpha))
	assert.Equal(t, []addonv1alpha1.ConfigMeta{
		{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "configmaps"}},
	}, alpha.Spec.SupportedConfigs)
	assert.Equal(t, "p", alpha.Spec.InstallStrategy.Placements[0].Name)
	assert.Equal(t, "All", string(alpha.Spec.InstallStrategy.Placements[0].RolloutStrategy.Type))
}

func TestListAndWatchInBeta(t *testing.T) {
	ctx, namespace := t.Context(), newNamespace(t)
	for i := range 3 {
		require.NoError(t, admin.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a%d", i), Namespace: namespace},
		}))
	}
	var list addonv1beta1.ManagedClusterAddOnList
	require.NoError(t, admin.List(ctx, &list, client.InNamespace(namespace)))
	require.Len(t, list.Items, 3)
	assert.NotEmpty(t, list.Items[2].Annotations[names.AnnotationInstallNamespace])

	events, err := admin.Watch(ctx, &addonv1beta1.ManagedClusterAddOnList{}, client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	require.NoError(t, err)
	defer events.Stop()
	require.NoError(t, admin.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: "late", Namespace: namespace},
		Spec:       addonv1alpha1.ManagedClusterAddOnSpec{InstallNamespace: "somewhere"},
	}))
	select {
	case event := <-events.ResultChan():
		require.Equal(t, watch.Added, event.Type)
		late, ok := event.Object.(*addonv1beta1.ManagedClusterAddOn)
		require.True(t, ok)
		assert.Equal(t, "somewhere", late.Annotations[names.AnnotationInstallNamespace])
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
	}
}

// Shows: hub/no-webhook-needed
func TestOurClientDoesNotNeedTheWebhook(t *testing.T) {
	ctx, namespace := t.Context(), newNamespace(t)
	wire, err := addonapi.Detect(admin.RESTMapper())
	require.NoError(t, err)
	require.Equal(t, addonapi.WireAlpha, wire)
	ours := addonapi.Client{Client: admin, Wire: wire}
	management := &addonv1alpha1.ClusterManagementAddOn{
		ObjectMeta: metav1.ObjectMeta{Name: "without-webhook"},
		Spec: addonv1alpha1.ClusterManagementAddOnSpec{
			InstallStrategy: addonv1alpha1.InstallStrategy{Type: addonv1alpha1.AddonInstallStrategyManual},
		},
	}
	require.NoError(t, admin.Create(ctx, management))

	converter.stop()
	t.Cleanup(func() {
		require.NoError(t, converter.start(context.WithoutCancel(ctx)))
	})
	key := client.ObjectKey{Namespace: namespace, Name: "hello"}

	require.NoError(t, ours.CreateAddOn(ctx, &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: key.Name, Namespace: key.Namespace,
		Annotations: map[string]string{names.AnnotationInstallNamespace: "somewhere"},
	}}))
	before, err := ours.GetAddOn(ctx, key)
	require.NoError(t, err)
	assert.Equal(t, "somewhere", before.Annotations[names.AnnotationInstallNamespace])

	after := before.DeepCopy()
	after.Status.Namespace = "somewhere"
	after.Status.ConfigReferences = []addonv1beta1.ConfigReference{{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Resource: "r"},
		DesiredConfig:       &addonv1beta1.ConfigSpecHash{ConfigReferent: addonv1beta1.ConfigReferent{Name: "n"}},
	}}
	changed, err := ours.PatchAddOnStatus(ctx, before, after)
	require.NoError(t, err)
	assert.True(t, changed)

	listed, err := ours.ListAddOns(ctx, client.InNamespace(namespace))
	require.NoError(t, err)
	require.Len(t, listed, 1)
	assert.Equal(t, after.Status, listed[0].Status)
	changed, err = ours.PatchAddOnStatus(ctx, listed[0], after)
	require.NoError(t, err)
	assert.False(t, changed, "what is the same already is not written")

	cma, err := ours.GetClusterManagementAddOn(ctx, management.Name)
	require.NoError(t, err)
	counted := cma.DeepCopy()
	counted.Status.InstallProgressions = []addonv1beta1.InstallProgression{
		{PlacementRef: addonv1beta1.PlacementRef{Namespace: "ns", Name: "p"}},
	}
	changed, err = ours.PatchClusterManagementAddOnStatus(ctx, cma, counted)
	require.NoError(t, err)
	assert.True(t, changed)

	err = admin.Get(ctx, key, &addonv1beta1.ManagedClusterAddOn{})
	require.Error(t, err, "everybody else does need it")
	assert.Contains(t, err.Error(), "conversion webhook")

	require.NoError(t, ours.DeleteAddOn(ctx, listed[0]))
	_, err = ours.GetAddOn(ctx, key)
	assert.True(t, apierrors.IsNotFound(err))
}

func TestTheServerTakesARenewedCertificate(t *testing.T) {
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(converter.authority.certificatePEM()))
	serial := func() (string, error) {
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
		conn, err := dialer.DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", converter.port))
		if err != nil {
			return "", err
		}
		defer func() { _ = conn.Close() }()
		secure, ok := conn.(*tls.Conn)
		if !ok {
			return "", fmt.Errorf("%T is no TLS connection", conn)
		}
		return secure.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
	}
	got, err := serial()
	require.NoError(t, err)
	require.Equal(t, "1", got)
	require.NoError(t, converter.renew(2))
	require.Eventually(t, func() bool {
		got, err := serial()
		return err == nil && got == "2"
	}, 30*time.Second, 50*time.Millisecond)
	require.NoError(t, admin.List(t.Context(), &addonv1beta1.ClusterManagementAddOnList{}))
}

// newNamespace makes a namespace of the test's own.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "conversion-"}}
	require.NoError(t, admin.Create(t.Context(), namespace))
	return namespace.Name
}
