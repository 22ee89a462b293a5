// Package approval_test runs the approval of the hub against a real control plane: requests are created by users with
// client certificates, approved and signed by a hub manager with the rights that are shipped, and those of Kubernetes'
// own signer are issued by kube-controller-manager.
package approval_test

import (
	"context"
	"crypto/rand"
	_ "embed"
	"testing"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/approval"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// plane is the control plane that the tests share, with the approval of the hub manager on it.
var plane *suite.Plane

//go:embed testdata/rbac.yaml
var rbac []byte

const (
	bootstrapUser = "bootstrap@example.com"
	addonName     = "hello"
	signerName    = "example.com/signer-test"
	// tokenAddon is an add-on whose agents take a token of a ServiceAccount and never a certificate.
	tokenAddon = "by-token"
	// caNamespace is where the CA Secrets are.
	caNamespace = "signing"
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		plane = suite.Start(t, sandbox.Options{Name: "approval"}, manifests.CRDs(), manifests.Hub(), [][]byte{rbac})
		startApproval(t)
	})
}

// startApproval runs the approval with the rights that are shipped.
func startApproval(t suite.T) {
	config := plane.AccountConfig(t, names.NamespaceHub, names.ServiceAccountManager)
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: suite.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&certificatesv1.CertificateSigningRequest{}: {Label: approval.Selector()},
		}},
	})
	require.NoError(t, err)
	require.NoError(t, approval.Index(t.Context(), mgr.GetFieldIndexer()))
	agents, err := addon.NewFixed(agent{}, byToken{}, weather(t))
	require.NoError(t, err)
	reconciler := &approval.Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Secrets: suite.NewClient(t, suite.AsAddOns(config)),
		AddOns: addonapi.Client{Client: mgr.GetClient()},
		Agents: agents, Configurer: unconfigured{}, Trust: approve.Trust{Users: []string{bootstrapUser}},
		Clock: clock.RealClock{}, Random: rand.Reader, Workers: 2,
	}
	require.NoError(t, reconciler.SetupWithManager(mgr))
	suite.StartManager(t, "the approval", mgr)
}

// agent is an add-on with one credential of each kind. Its CA is the Secret that the add-on's annotation "ca" names.
type agent struct{}

func (agent) About() addon.About { return addon.About{Name: addonName} }

func (agent) Resolve(_ context.Context, request addon.Request) (addon.Resolved, error) {
	return addon.Resolved{Registrations: registrations(request.Cluster.Name)}, nil
}

func (agent) SigningCA(_ context.Context, request addon.Request, signer string) (addon.SigningCA, bool, error) {
	secret := types.NamespacedName{Namespace: caNamespace, Name: request.AddOn.Annotations["ca"]}
	return addon.SigningCA{Secret: secret}, signer == signerName, nil
}

func (agent) SharedPermissions(context.Context) ([]addon.Permission, error) { return nil, nil }

func (agent) Render(context.Context, addon.Request) (addon.Rendering, error) {
	return addon.Rendering{}, nil
}

// unconfigured is a hub without configurations.
type unconfigured struct{ addon.Configurer }

func (unconfigured) Configure(context.Context, *addonv1beta1.ManagedClusterAddOn) (addon.Configuration, error) {
	return addon.Configuration{}, nil
}

// byToken is an add-on that registers with a token.
type byToken struct{ agent }

func (byToken) About() addon.About { return addon.About{Name: tokenAddon} }

func (byToken) Resolve(context.Context, addon.Request) (addon.Resolved, error) {
	return addon.Resolved{Registrations: []addonv1beta1.RegistrationConfig{{
		Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{Driver: "token"},
	}}}, nil
}

// registrations are the kubeClient and the customSigner registration of the add-on on a cluster.
func registrations(cluster string) []addonv1beta1.RegistrationConfig {
	return []addonv1beta1.RegistrationConfig{
		{
			Type: addonv1beta1.KubeClient,
			KubeClient: &addonv1beta1.KubeClientConfig{Subject: addonv1beta1.KubeClientSubject{
				BaseSubject: addonv1beta1.BaseSubject{
					User: csr.AddonUser(cluster, addonName, addonName+"-agent"), Groups: csr.AddonGroups(cluster, addonName),
				},
			}},
		},
		{
			Type: addonv1beta1.CustomSigner,
			CustomSigner: &addonv1beta1.CustomSignerConfig{
				SignerName: signerName,
				Subject: addonv1beta1.Subject{
					BaseSubject:       addonv1beta1.BaseSubject{User: "user-test", Groups: []string{"group-test"}},
					OrganizationUnits: []string{"organization-test"},
				},
			},
		},
	}
}
