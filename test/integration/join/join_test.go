package join_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: registration/joins, registration/joins-through-http-proxy, registration/joins-through-https-proxy
func TestAClusterJoins(t *testing.T) {
	tests := map[string]struct{ proxy, secure bool }{
		"straight":               {},
		"through an http proxy":  {proxy: true},
		"through an https proxy": {proxy: true, secure: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMember(t, "joins")
			w, through := way{hub: first}, (*proxy)(nil)
			if tc.proxy {
				through = startProxy(t, tc.secure)
				w.proxy, w.ca = through.url, through.ca
			}
			m.bootstrapSecret(w.kubeconfig(t))
			m.start()
			m.eventually(func() bool { return m.cluster(first) != nil && len(m.requests(first)) == 1 },
				"the ManagedCluster and a request")
			assert.False(t, m.cluster(first).Spec.HubAcceptsClient)
			assert.Nil(t, m.secret())
			m.admit(first)

			stored := m.secret()
			assert.Equal(t, m.name, string(stored.Data["cluster-name"]))
			server, err := issue.ParseHubServer(stored.Data["kubeconfig"])
			require.NoError(t, err)
			assert.Equal(t, w.proxy, server.ProxyURL)
			assert.Equal(t, "hub", server.Cluster)
			var namespace corev1.Namespace
			require.NoError(t, first.Client.Get(t.Context(), types.NamespacedName{Name: m.name}, &namespace))
			m.awaitCondition(first, csr.ConditionRotated)
			assert.Len(t, m.requests(first), 1)
			if through != nil {
				assert.Positive(t, through.connects.Load(), "the proxy was used")
				assert.Zero(t, through.foreign.Load(), "and for the hub alone")
			}
		})
	}
}

// Shows: registration/cluster-annotations
func TestOnlyAnnotationsOfTheAgentAppearAtCreation(t *testing.T) {
	m := newMember(t, "annotated")
	m.bootstrapSecret(way{hub: first}.kubeconfig(t))
	m.config.ClusterAnnotations = map[string]string{"agent.open-cluster-management.io/foo": "bar", "foo": "bar"}
	m.config.ExternalServerURLs = []string{"https://spoke.example.com:6443"}
	m.start()
	m.eventually(func() bool { return m.cluster(first) != nil }, "the ManagedCluster")
	created := m.cluster(first)
	assert.Equal(t, "bar", created.Annotations["agent.open-cluster-management.io/foo"])
	assert.NotContains(t, created.Annotations, "foo")
	assert.Equal(t, []clusterv1.ClientConfig{
		{URL: "https://spoke.example.com:6443", CABundle: first.CA()},
	}, created.Spec.ManagedClusterClientConfigs)
}

func TestTheCredentialCanHaveAnotherNameAndIsShownAsFiles(t *testing.T) {
	m := newMember(t, "files")
	m.bootstrapSecret(way{hub: brief}.kubeconfig(t))
	m.config.HubSecret, m.config.ClusterName = "my-hub", ""
	m.config.HubKubeconfigDir = filepath.Join(m.dir, "hub-kubeconfig")
	m.start()
	m.eventually(func() bool { m.adoptName(); return m.config.ClusterName != "" }, "a cluster with a drawn name")
	m.admit(brief)
	assert.Nil(t, m.secretNamed(names.SecretHub))
	first := m.secret()
	shown := func(key string) string {
		data, err := os.ReadFile(filepath.Join(m.config.HubKubeconfigDir, key))
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	m.eventually(func() bool { return shown("tls.crt") == string(first.Data["tls.crt"]) }, "the certificate is a file")
	assert.Equal(t, string(first.Data["cluster-name"]), shown("cluster-name"))

	// A client that knows nothing but the directory reads the hub.
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(m.config.HubKubeconfigDir, "kubeconfig"))
	require.NoError(t, err)
	reader := suite.NewClient(t, config)
	require.NoError(t, reader.Get(t.Context(), types.NamespacedName{Name: m.name}, &clusterv1.ManagedCluster{}))

	kubeconfig := shown("kubeconfig")
	m.awaitNewCertificate(first.Data["tls.crt"])
	m.eventually(func() bool { return shown("tls.crt") != string(first.Data["tls.crt"]) }, "the new certificate is the file")
	assert.Equal(t, kubeconfig, shown("kubeconfig"), "a rotation leaves the kubeconfig alone")

	// The names are kept under the other name, too.
	m.config.ClusterName = ""
	m.restart()
	m.awaitServing()
	assert.Equal(t, m.name, string(m.secret().Data["cluster-name"]))
}

// Shows: registration/denied-told-at-once
func TestADeniedRequestIsToldAtOnce(t *testing.T) {
	m := newMember(t, "denied")
	m.bootstrapSecret(way{hub: first}.kubeconfig(t))
	m.start()
	m.awaitState("AwaitingApproval: Waiting for a person")
	m.decide(first, certificatesv1.CertificateDenied)
	m.awaitState("was denied: ByTest: by a person")
	assert.Nil(t, m.secret())
	assert.Len(t, m.requests(first), 1, "the next request comes after a pause")
}

// Shows: registration/bootstrap-problem-named
func TestABootstrapCredentialThatMayNothingIsTold(t *testing.T) {
	m := newMember(t, "nobody")
	m.bootstrapSecret(way{hub: first, token: "nobody"}.kubeconfig(t))
	m.start()
	m.awaitState("answers 401 Unauthorized to the bootstrap credential")
	assert.Nil(t, m.cluster(first))
}
