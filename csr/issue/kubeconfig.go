package issue

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/spokelet/spokelet/csr"
)

const (
	kubeconfigUser      = "default-auth"
	kubeconfigToken     = "token"
	kubeconfigContext   = "default-context"
	kubeconfigNamespace = "configuration"
)

// HubServer is the connection to a hub, from the current context of a kubeconfig.
type HubServer struct {
	// Cluster is the name of the cluster entry.
	Cluster string
	// Server is the URL of the API server.
	Server string
	// ProxyURL is the proxy on the way; empty for none.
	ProxyURL string
	// CAFile is the path of the CA bundle; empty where it is in CAData.
	CAFile string
	// CAData is the CA bundle, PEM.
	CAData []byte
}

// ParseHubServer reads the current context of a kubeconfig. The error names the field that is missing.
func ParseHubServer(kubeconfig []byte) (HubServer, error) {
	if len(bytes.TrimSpace(kubeconfig)) == 0 {
		return HubServer{}, errors.New("it is empty")
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return HubServer{}, fmt.Errorf("it is no kubeconfig: %w", err)
	}
	if config.CurrentContext == "" {
		return HubServer{}, errors.New("current-context is not set: set it to the context that leads to the hub")
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok || current == nil {
		return HubServer{}, fmt.Errorf("current-context is %q, but contexts has no such entry", config.CurrentContext)
	}
	entry, ok := config.Clusters[current.Cluster]
	if !ok || entry == nil {
		return HubServer{}, fmt.Errorf("context %q names cluster %q, but clusters has no such entry",
			config.CurrentContext, current.Cluster)
	}
	if err := checkServer(current.Cluster, entry.Server); err != nil {
		return HubServer{}, err
	}
	return HubServer{
		Cluster: current.Cluster, Server: entry.Server, ProxyURL: entry.ProxyURL,
		CAFile: entry.CertificateAuthority, CAData: entry.CertificateAuthorityData,
	}, nil
}

func checkServer(cluster, server string) error {
	if server == "" {
		return fmt.Errorf("cluster %q has no server: set it to the URL of the hub", cluster)
	}
	u, err := url.Parse(server)
	if err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http") {
		if strings.Contains(server, "@") { // There may be a password in it.
			server = "(with a user)"
		}
		return fmt.Errorf("cluster %q has server %q, which is no URL like https://hub.example.com:6443", cluster, server)
	}
	return nil
}

// SameHub reports whether both lead to the same hub; the way there, proxy and CA bundle, may differ.
func (h HubServer) SameHub(other HubServer) bool {
	return h.Cluster == other.Cluster && h.Server == other.Server
}

// Equal reports whether both lead to the same hub in the same way.
func (h HubServer) Equal(other HubServer) bool {
	return h.SameHub(other) && h.ProxyURL == other.ProxyURL && h.CAFile == other.CAFile &&
		bytes.Equal(h.CAData, other.CAData)
}

// Name identifies the hub in one short string; it is equal for all for which SameHub is true.
func (h HubServer) Name() string { return shortHash(h.Cluster, h.Server) }

// Kubeconfig returns the kubeconfig of a credential Secret: the hub as given, and certificate and key as files beside
// it. It depends on the hub alone, so a new certificate does not change it (docs/reference/registration.md, "Stored
// credential").
func (h HubServer) Kubeconfig() ([]byte, error) { return h.kubeconfig(certificateUser()) }

// TokenKubeconfig is Kubeconfig for a Secret that holds a token, which is the file token beside it.
func (h HubServer) TokenKubeconfig() ([]byte, error) { return h.kubeconfig(tokenUser()) }

// Describes reports whether a stored kubeconfig is equivalent to Kubeconfig.
func (h HubServer) Describes(kubeconfig []byte) bool {
	return h.describes(kubeconfig, certificateUser())
}

// DescribesToken reports whether a stored kubeconfig is equivalent to TokenKubeconfig.
func (h HubServer) DescribesToken(kubeconfig []byte) bool {
	return h.describes(kubeconfig, tokenUser())
}

func certificateUser() clientcmdapi.AuthInfo {
	return clientcmdapi.AuthInfo{ClientCertificate: csr.KeyCertificate, ClientKey: csr.KeyPrivateKey}
}

func tokenUser() clientcmdapi.AuthInfo { return clientcmdapi.AuthInfo{TokenFile: kubeconfigToken} }

func (h HubServer) kubeconfig(user clientcmdapi.AuthInfo) ([]byte, error) {
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{h.Cluster: {
			Server: h.Server, ProxyURL: h.ProxyURL,
			CertificateAuthority: h.CAFile, CertificateAuthorityData: h.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{kubeconfigUser: &user},
		Contexts: map[string]*clientcmdapi.Context{kubeconfigContext: {
			Cluster: h.Cluster, AuthInfo: kubeconfigUser, Namespace: kubeconfigNamespace,
		}},
		CurrentContext: kubeconfigContext,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the kubeconfig for %s: %w", h.Server, err)
	}
	return raw, nil
}

func (h HubServer) describes(kubeconfig []byte, user clientcmdapi.AuthInfo) bool {
	have, err := ParseHubServer(kubeconfig)
	if err != nil || !have.Equal(h) {
		return false
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return false
	}
	written := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
	return written != nil && written.ClientCertificate == user.ClientCertificate &&
		written.ClientKey == user.ClientKey && written.TokenFile == user.TokenFile
}
