package join

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
)

// Reason is the state of a stored credential.
type Reason string

// The reasons of a Verdict.
const (
	// ReasonValid means that the credential may be used.
	ReasonValid Reason = "Valid"
	// ReasonRewrite means that the certificate is valid and for this hub, but other keys of the Secret must be rewritten.
	ReasonRewrite Reason = "Rewrite"
	// ReasonSecretMissing means that there is no credential yet.
	ReasonSecretMissing Reason = "SecretMissing"
	// ReasonHubChanged means that the credential is for another hub than the bootstrap kubeconfig.
	ReasonHubChanged Reason = "HubChanged"
	// ReasonCertificateUnfit means that the certificate is missing, expired, for another name or without its key.
	ReasonCertificateUnfit Reason = "CertificateUnfit"
	// ReasonRefused means that the certificate looks valid, but the hub answers 401 to it.
	ReasonRefused Reason = "Refused"
)

// Facts are the inputs of Judge.
type Facts struct {
	// Server is the hub of the bootstrap kubeconfig.
	Server issue.HubServer
	// Identity is the identity of the agent.
	Identity csr.Identity
	// Data is the content of the credential Secret; nil when there is none.
	Data map[string][]byte
	// Pair is the certificate in that Secret with its key.
	Pair issue.Pair
	// secret is that Secret as last read; nil when there is none.
	secret *corev1.Secret
	// Refused is a certificate, PEM, that the hub answers 401 to; nil when there is none.
	Refused []byte
	// Now is the present time by the clock of the hub.
	Now time.Time
}

// refused reports whether the stored certificate is the one that the hub refuses.
func (f Facts) refused() bool {
	return len(f.Refused) > 0 && bytes.Equal(f.Refused, f.Pair.Certificate)
}

// take sets the facts of the credential Secret; nil means that there is none.
func (f *Facts) take(secret *corev1.Secret) {
	f.secret, f.Data, f.Pair = secret, nil, issue.PairOf(secret)
	if secret != nil {
		f.Data = secret.Data
	}
}

// Verdict is the result of Judge.
type Verdict struct {
	// Reason is the state of the credential.
	Reason Reason
	// Message explains the state to a person.
	Message string
	// Certificate is the verdict on the certificate alone.
	Certificate issue.PairVerdict
}

// Valid reports whether the credential may be used as it is.
func (v Verdict) Valid() bool { return v.Reason == ReasonValid }

// Judge decides whether a stored credential may be used (docs/reference/registration.md, "Stored credential"). A
// credential with another CA bundle, proxy or names is valid after a rewrite; only another hub or an unfit certificate
// needs a new one.
func Judge(f Facts) Verdict {
	if f.Data == nil {
		return Verdict{Reason: ReasonSecretMissing, Message: "there is no credential for the hub yet"}
	}
	v := Verdict{Certificate: issue.JudgePair(
		f.Pair, csr.ForCluster(f.Identity.Cluster, f.Identity.Agent), f.Now)}
	if have, changed := hubChanged(f.Server, f.Data); changed {
		v.Reason = ReasonHubChanged
		v.Message = fmt.Sprintf("the stored credential is for hub %s (%s), the bootstrap kubeconfig leads to %s (%s)",
			have.Server, have.Cluster, f.Server.Server, f.Server.Cluster)
		return v
	}
	if !v.Certificate.Fits {
		v.Reason, v.Message = ReasonCertificateUnfit, v.Certificate.Why
		return v
	}
	if f.refused() {
		v.Reason, v.Message = ReasonRefused, "the hub answers 401 Unauthorized to the stored certificate"
		return v
	}
	if drifted := drift(f); drifted != "" {
		v.Reason, v.Message = ReasonRewrite, drifted+" is missing or not as the bootstrap kubeconfig and the names say"
		return v
	}
	v.Reason = ReasonValid
	return v
}

// hubChanged reports whether the stored kubeconfig is for another hub. One that cannot be parsed does not count.
func hubChanged(server issue.HubServer, data map[string][]byte) (issue.HubServer, bool) {
	have, err := issue.ParseHubServer(data[csr.KeyKubeconfig])
	return have, err == nil && !have.SameHub(server)
}

// drift returns the first key of the Secret that differs from the facts, the certificate aside; empty for none. An
// equivalent kubeconfig does not differ.
func drift(f Facts) string {
	switch {
	case !f.Server.Describes(f.Data[csr.KeyKubeconfig]):
		return csr.KeyKubeconfig
	case string(f.Data[csr.KeyClusterName]) != f.Identity.Cluster:
		return csr.KeyClusterName
	case string(f.Data[csr.KeyAgentName]) != f.Identity.Agent:
		return csr.KeyAgentName
	}
	return ""
}

// Credential is a credential that may be used.
type Credential struct {
	// Identity is the owner of the credential.
	Identity csr.Identity
	// Server is the hub it is for.
	Server issue.HubServer
	// Pair is the certificate with its key.
	Pair issue.Pair
	// NotAfter is the time at which it expires, RotateAt the time at which the Reconciler replaces it.
	NotAfter, RotateAt time.Time
}

// Same reports whether both are the same certificate for the same hub, reached in the same way.
func (c Credential) Same(other Credential) bool {
	return c.Server.Equal(other.Server) && c.Identity == other.Identity &&
		bytes.Equal(c.Pair.Certificate, other.Pair.Certificate) && bytes.Equal(c.Pair.Key, other.Pair.Key)
}

// Kubeconfig returns a kubeconfig with embedded certificate and key.
func (c Credential) Kubeconfig() ([]byte, error) {
	raw, err := c.Server.Kubeconfig()
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("reading our own kubeconfig: %w", err)
	}
	for _, user := range config.AuthInfos {
		user.ClientCertificate, user.ClientKey = "", ""
		user.ClientCertificateData, user.ClientKeyData = c.Pair.Certificate, c.Pair.Key
	}
	return clientcmd.Write(*config)
}

// RESTConfig returns a client configuration with embedded certificate and key.
func (c Credential) RESTConfig() (*rest.Config, error) {
	raw, err := c.Kubeconfig()
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		return nil, fmt.Errorf("reading our own kubeconfig: %w", err)
	}
	return config, nil
}

// Prepare judges the credential in the Secret called key before a phase, and repairs it if it needs no new certificate.
// It fills in the facts of the Secret. The Credential is set only when the Verdict is valid. c must not read from a
// cache.
func Prepare(
	ctx context.Context, c client.Client, key types.NamespacedName, facts Facts,
) (Credential, Verdict, error) {
	secret, err := readSecret(ctx, c, key)
	if err != nil {
		return Credential{}, Verdict{}, err
	}
	facts.take(secret)
	verdict := Judge(facts)
	if verdict.Reason == ReasonRewrite {
		if err := store(ctx, c, key, facts); err != nil {
			return Credential{}, verdict, err
		}
		verdict.Reason = ReasonValid
	}
	if !verdict.Valid() {
		return Credential{}, verdict, nil
	}
	return credentialOf(facts, verdict.Certificate), verdict, nil
}

func credentialOf(f Facts, v issue.PairVerdict) Credential {
	return Credential{Identity: f.Identity, Server: f.Server, Pair: f.Pair, NotAfter: v.NotAfter, RotateAt: v.RotateAt}
}

// store writes the pair, the names and the kubeconfig to the credential Secret. Unknown keys stay.
func store(ctx context.Context, c client.Client, key types.NamespacedName, f Facts) error {
	kubeconfig, err := f.Server.Kubeconfig()
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if f.secret != nil {
		secret = f.secret.DeepCopy()
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[csr.KeyClusterName] = []byte(f.Identity.Cluster)
	secret.Data[csr.KeyAgentName] = []byte(f.Identity.Agent)
	f.Pair.Put(secret)
	if facts := (Facts{Server: f.Server, Identity: f.Identity, Data: secret.Data}); drift(facts) == csr.KeyKubeconfig {
		secret.Data[csr.KeyKubeconfig] = kubeconfig
	}
	if err := write(ctx, c, secret); err != nil {
		return fmt.Errorf("storing the hub credential %s: %w", key, err)
	}
	return nil
}
