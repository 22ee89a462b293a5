package scenarios_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// Shows: hub/story-template
func TestATemplateWithTwoCredentials(t *testing.T) {
	t.Parallel()
	s := story{T: t, addOn: "weather", file: "template.yaml"}
	ca, err := sandbox.NewCA("stations", nil)
	require.NoError(s, err)
	s.apply("CERTIFICATE", base64.StdEncoding.EncodeToString(ca.CertPEM),
		"KEY", base64.StdEncoding.EncodeToString(ca.KeyPEM))
	for _, cluster := range []string{east, west} {
		s.runs(cluster)
		s.says(cluster, "ClusterCertificateRotated", metav1.ConditionTrue, "ClientCertificateUpdated")
		d := get(t, cluster, names.NamespaceAgentAddon, "weather-agent", &appsv1.Deployment{})
		assert.Equal(t, []string{
			"--cluster-name=" + cluster, "--hub-kubeconfig=/managed/hub-kubeconfig/kubeconfig", "--v=2",
		}, d.Spec.Template.Spec.Containers[0].Args)
		s.usesHub(cluster)
		s.hasCertificate(cluster, ca.Certificate)
	}

	s.deleteManagement()
	for _, cluster := range []string{east, west} {
		in := func(name string) metav1.ObjectMeta {
			return metav1.ObjectMeta{Namespace: names.NamespaceAgentAddon, Name: name}
		}
		goes(t, cluster, &appsv1.Deployment{ObjectMeta: in("weather-agent")},
			&corev1.ServiceAccount{ObjectMeta: in("weather-agent")},
			&corev1.Secret{ObjectMeta: in("weather-hub-kubeconfig")},
			&corev1.Secret{ObjectMeta: in("weather-weather.example.com-stations-client-cert")},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "weather-agent"}})
	}
}

// usesHub does with the kubeconfig of the add-on what its template asks for, and something else.
func (s story) usesHub(cluster string) {
	s.Helper()
	secret := get(s.T, cluster, names.NamespaceAgentAddon, s.addOn+"-hub-kubeconfig", &corev1.Secret{})
	loaded, err := clientcmd.Load(secret.Data["kubeconfig"])
	require.NoError(s, err)
	for _, user := range loaded.AuthInfos {
		user.ClientCertificateData, user.ClientKeyData = secret.Data[user.ClientCertificate], secret.Data[user.ClientKey]
		user.ClientCertificate, user.ClientKey = "", ""
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	require.NoError(s, err)
	agent := suite.NewClient(s, config)
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: s.addOn}}
	suite.Eventually(s, func() error { return client.IgnoreAlreadyExists(agent.Create(s.Context(), own.DeepCopy())) })
	require.NoError(s, agent.Delete(s.Context(), own))
	require.NoError(s, agent.List(s.Context(), &corev1.ConfigMapList{}, client.InNamespace(s.addOn+"-central")))
	err = agent.List(s.Context(), &corev1.ConfigMapList{}, client.InNamespace(local))
	require.True(s, apierrors.IsForbidden(err), "another cluster is none of its business: %v", err)
}

// hasCertificate looks at the certificate of the signer of the add-on.
func (s story) hasCertificate(cluster string, ca *x509.Certificate) {
	s.Helper()
	secret := get(s.T, cluster, names.NamespaceAgentAddon, s.addOn+"-"+s.addOn+".example.com-stations-client-cert",
		&corev1.Secret{})
	suite.Eventually(s, func() error {
		if err := clusters[cluster].Client.Get(s.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		if len(secret.Data["tls.crt"]) == 0 {
			return errors.New("there is no certificate yet")
		}
		return nil
	})
	block, _ := pem.Decode(secret.Data["tls.crt"])
	require.NotNil(s, block)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(s, err)
	assert.Equal(s, "station", certificate.Subject.CommonName)
	assert.Equal(s, []string{"stations"}, certificate.Subject.Organization)
	assert.Equal(s, []string{"outdoors"}, certificate.Subject.OrganizationalUnit)
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	_, err = certificate.Verify(x509.VerifyOptions{
		Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	require.NoError(s, err)
}
