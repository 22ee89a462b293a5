package csr

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// pemRequest is the PEM type of a certificate request.
	pemRequest = "CERTIFICATE REQUEST"
	// pemKey is the PEM type of the private keys of the protocol.
	pemKey = "EC PRIVATE KEY"
	// addonDomain is the suffix of the DNS name of an add-on agent.
	addonDomain = ".addon.open-cluster-management.io"
	// kubeconfigSecretSuffix is the suffix of the Secret of a kubeClient registration.
	kubeconfigSecretSuffix = "-hub-kubeconfig"
	// clientCertSecretSuffix ends the name of the Secret of a customSigner registration.
	clientCertSecretSuffix = "-client-cert"
	// maxSecretName is the longest name that a Secret can have.
	maxSecretName = 253
	// maxParseError is the most bytes of the reason why a request cannot be decoded.
	maxParseError = 100
	// minRSABits and maxRSABits bound the RSA keys that are accepted.
	minRSABits, maxRSABits = 2048, 8192
	// minECDSABits is the smallest ECDSA key that is accepted.
	minECDSABits = 256
)

// Usages returns the usages of every certificate of the protocol.
func Usages() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{
		certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
	}
}

// Request is the content of a certificate request and the labels of the request object.
type Request struct {
	// GenerateName is the prefix of the name of the request object.
	GenerateName string
	// Labels mark the request object with its cluster and, for add-ons, its add-on.
	Labels map[string]string
	// Signer is the signer that is to issue the certificate.
	Signer string
	// User becomes the common name.
	User string
	// Groups become the organizations, in this order.
	Groups []string
	// OrganizationalUnits become the organizational units, in this order.
	OrganizationalUnits []string
	// DNSNames become the subject alternative names.
	DNSNames []string
	// ExpirationSeconds is the requested lifetime; nil leaves it to the signer.
	ExpirationSeconds *int32
}

// ForCluster returns the request for a cluster's own credential (docs/reference/registration.md, "Request of a
// cluster").
func ForCluster(cluster, agent string) Request {
	return Request{
		GenerateName: cluster + "-",
		Labels:       map[string]string{names.LabelClusterName: cluster},
		Signer:       certificatesv1.KubeAPIServerClientSignerName,
		User:         ClusterUser(cluster, agent),
		Groups:       []string{ClusterGroup(cluster), GroupManagedClusters},
	}
}

// ForAddon returns the request for one registration of an add-on (docs/reference/registration.md, "Request of an
// add-on"). The error names the field of the registration that is wrong.
func ForAddon(cluster, addon string, r addonv1beta1.RegistrationConfig) (Request, error) {
	if problems := validation.IsValidLabelValue(addon); len(problems) > 0 || addon == "" {
		return Request{}, fmt.Errorf("add-on name %q cannot be the value of label %s: %s",
			addon, names.LabelAddonName, strings.Join(problems, "; "))
	}
	req := Request{
		GenerateName: "addon-" + cluster + "-" + addon + "-",
		Labels:       map[string]string{names.LabelClusterName: cluster, names.LabelAddonName: addon},
		DNSNames:     []string{addon + addonDomain},
	}
	var subject addonv1beta1.BaseSubject
	switch r.Type {
	case addonv1beta1.KubeClient:
		req.Signer = certificatesv1.KubeAPIServerClientSignerName
		if r.KubeClient != nil {
			subject = r.KubeClient.Subject.BaseSubject
		}
		if len(subject.Groups) == 0 {
			subject.Groups = []string{addonGroup(cluster, addon)}
		}
	case addonv1beta1.CustomSigner:
		if r.CustomSigner == nil || r.CustomSigner.SignerName == "" {
			return Request{}, errors.New("a registration of type customSigner needs customSigner.signerName")
		}
		req.Signer = r.CustomSigner.SignerName
		req.OrganizationalUnits = append([]string(nil), r.CustomSigner.Subject.OrganizationUnits...)
		subject = r.CustomSigner.Subject.BaseSubject
	default:
		return Request{}, fmt.Errorf("registration type %q is unknown: it must be %s or %s",
			r.Type, addonv1beta1.KubeClient, addonv1beta1.CustomSigner)
	}
	req.User = subject.User
	if req.User == "" {
		req.User = AddonUser(cluster, addon, addon)
	}
	req.Groups = append([]string(nil), subject.Groups...)
	if name := AddonSecretName(addon, r); len(name) > maxSecretName {
		return Request{}, fmt.Errorf("signer %s makes the Secret name %q, which is longer than the %d characters that "+
			"Kubernetes allows", req.Signer, name, maxSecretName)
	}
	return req, nil
}

// Subject returns the cluster and the add-on that the labels of a request name, and whether it carries the label of an
// add-on at all. The author of a request chooses the labels freely: they only select the content to compare with.
func Subject(request *certificatesv1.CertificateSigningRequest) (cluster, addon string, addonLabel bool) {
	addon, addonLabel = request.Labels[names.LabelAddonName]
	return request.Labels[names.LabelClusterName], addon, addonLabel
}

// AddonSecretName returns the name of the Secret in the add-on's namespace that holds the credential of a
// registration; empty when the registration names neither of the two types completely.
func AddonSecretName(addon string, r addonv1beta1.RegistrationConfig) string {
	switch {
	case r.Type == addonv1beta1.KubeClient:
		return addon + kubeconfigSecretSuffix
	case r.Type == addonv1beta1.CustomSigner && r.CustomSigner != nil && r.CustomSigner.SignerName != "":
		return addon + "-" + strings.ReplaceAll(r.CustomSigner.SignerName, "/", "-") + clientCertSecretSuffix
	}
	return ""
}

// NewKey returns a new ECDSA P-256 private key as PEM.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating a private key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}), nil
}

// Build returns the request object to be created on the hub, signed with the key.
func (r Request) Build(keyPEM []byte) (*certificatesv1.CertificateSigningRequest, error) {
	key, err := ParseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{
			CommonName: r.User, Organization: r.Groups, OrganizationalUnit: r.OrganizationalUnits,
		},
		DNSNames: r.DNSNames,
	}, key)
	if err != nil {
		return nil, fmt.Errorf("building a certificate request for %s: %w", r.User, err)
	}
	labels := make(map[string]string, len(r.Labels))
	for name, value := range r.Labels {
		labels[name] = value
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: r.GenerateName, Labels: labels},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: der}),
			SignerName:        r.Signer,
			Usages:            Usages(),
			ExpirationSeconds: r.ExpirationSeconds,
		},
	}, nil
}

// ParseRequest decodes spec.request of a request object.
func ParseRequest(requestPEM []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(requestPEM)
	if block == nil || block.Type != pemRequest {
		return nil, fmt.Errorf("the request holds no PEM block of type %s", pemRequest)
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("decoding a certificate request: %w", err)
	}
	return parsed, nil
}

// ParseStrictly decodes spec.request, which must be one PEM block and nothing besides.
func ParseStrictly(request []byte) (*x509.CertificateRequest, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(request), []byte("-----BEGIN "+pemRequest+"-----")) {
		return nil, fmt.Errorf("spec.request must be one PEM block of type %s", pemRequest)
	}
	block, rest := pem.Decode(request)
	if block == nil || block.Type != pemRequest || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("spec.request must be one PEM block of type %s without headers", pemRequest)
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("spec.request cannot be decoded (%s)", message.Cut(err.Error(), maxParseError))
	}
	return parsed, nil
}

// CheckKey accepts the keys that present clients use, if they signed the request; otherwise it returns the problems.
func CheckKey(parsed *x509.CertificateRequest) string {
	switch key := parsed.PublicKey.(type) {
	case *ecdsa.PublicKey:
		if size := key.Curve.Params().BitSize; size < minECDSABits {
			return fmt.Sprintf("its ECDSA key has %d bits, and %d are needed", size, minECDSABits)
		}
	case ed25519.PublicKey:
	case *rsa.PublicKey:
		if size := key.N.BitLen(); size < minRSABits || size > maxRSABits {
			return fmt.Sprintf("its RSA key has %d bits, and must have %d to %d", size, minRSABits, maxRSABits)
		}
	default:
		return "its key is neither ECDSA nor Ed25519 nor RSA"
	}
	if err := parsed.CheckSignature(); err != nil {
		return "it is not signed by the key that it carries"
	}
	return ""
}

// ParseKey decodes a private key as NewKey writes it.
func ParseKey(keyPEM []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil || block.Type != pemKey {
		return nil, fmt.Errorf("the private key holds no PEM block of type %s", pemKey)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("decoding a private key: %w", err)
	}
	return key, nil
}
