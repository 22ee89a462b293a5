package sandbox

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLifetime is long enough for the longest soak.
const tokenLifetime = 24 * time.Hour

// Admin returns a configuration that may do everything, without a limit on the client side.
func (c *ControlPlane) Admin() *rest.Config { return rest.CopyConfig(c.admin) }

// User returns a configuration for a user and its groups, by a client certificate of the control plane's authority.
func (c *ControlPlane) User(user string, groups ...string) (*rest.Config, error) {
	certPEM, keyPEM, err := c.authority.client(time.Now(), user, groups...)
	if err != nil {
		return nil, fmt.Errorf("issuing a certificate for user %s: %w", user, err)
	}
	cfg := c.anonymous()
	cfg.CertData, cfg.KeyData = certPEM, keyPEM
	return cfg, nil
}

// ServiceAccount returns a configuration with a token of an existing ServiceAccount.
func (c *ControlPlane) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	clients, err := kubernetes.NewForConfig(c.Admin())
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	seconds := int64(tokenLifetime.Seconds())
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
	}
	answer, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("getting a token of ServiceAccount %s/%s: %w", namespace, name, err)
	}
	cfg := c.anonymous()
	cfg.BearerToken = answer.Status.Token
	return cfg, nil
}

// Kubeconfig returns a kubeconfig for cfg that holds everything in itself.
func (c *ControlPlane) Kubeconfig(cfg *rest.Config) ([]byte, error) { return Kubeconfig(c.Name, cfg) }

// Kubeconfig returns a kubeconfig for cfg that holds everything in itself, with a name for the cluster.
func Kubeconfig(name string, cfg *rest.Config) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		Token: cfg.BearerToken, ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData,
	}
	config.Contexts["context"] = &clientcmdapi.Context{Cluster: name, AuthInfo: "user"}
	config.CurrentContext = "context"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("writing a kubeconfig for %s: %w", name, err)
	}
	return data, nil
}

func (c *ControlPlane) anonymous() *rest.Config {
	return &rest.Config{
		Host: c.Host, TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.certPEM}, QPS: -1,
	}
}
