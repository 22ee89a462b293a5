package issue

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

const (
	// pendingSuffix ends the names of the Secrets that hold pending keys.
	pendingSuffix = "-pending"
	// keyFingerprint is the key of a pending Secret with the fingerprint of the request.
	keyFingerprint = "fingerprint"
	// keyRequestUID is the key of a pending Secret with the UID of the request object, once it is known to exist.
	keyRequestUID = "csr-uid"
	// keyIssuedAt is the key of a pending Secret with the time at which it got its certificate.
	keyIssuedAt = "issued-at"
	// keyAttempt is the key of a pending Secret with the number of refusals so far.
	keyAttempt = "attempt"
	// keyMadeAt is the key of a pending Secret with the creation time of its private key.
	keyMadeAt = "made-at"
	// keyFailure is the key of a pending Secret with the failure of the previous request.
	keyFailure = "failure"

	// hashLength is the number of hexadecimal digits of a hash that is part of a name.
	hashLength = 10
)

// pendingKey is a private key that waits for its certificate.
type pendingKey struct {
	// key is the private key, PEM.
	key []byte
	// fingerprint identifies the request and the hub.
	fingerprint string
	// requestUID is the UID of the request object; empty until it is known to exist.
	requestUID types.UID
	// certificate is the issued chain while it cannot be stored where it belongs, PEM.
	certificate []byte
	// issuedAt is since when the certificate is kept; zero when there is none.
	issuedAt time.Time
	// madeAt is when the key was made, by the clock of the hub as far as the agent knew it; zero when that is not known.
	madeAt time.Time
	// attempt counts the refusals in a row before this key.
	attempt int
	// failure is the failure of the previous request; empty for the first.
	failure string
}

// readPending reads the pending key out of its Secret; nil when the Secret is nil or holds no key.
func readPending(secret *corev1.Secret) *pendingKey {
	if secret == nil || len(secret.Data[csr.KeyPrivateKey]) == 0 {
		return nil
	}
	attempt, err := strconv.Atoi(string(secret.Data[keyAttempt]))
	if err != nil || attempt < 0 {
		attempt = 0
	}
	return &pendingKey{
		issuedAt:    readTime(secret.Data[keyIssuedAt]),
		madeAt:      readTime(secret.Data[keyMadeAt]),
		key:         secret.Data[csr.KeyPrivateKey],
		fingerprint: string(secret.Data[keyFingerprint]),
		requestUID:  types.UID(secret.Data[keyRequestUID]),
		certificate: secret.Data[csr.KeyCertificate],
		attempt:     attempt,
		failure:     string(secret.Data[keyFailure]),
	}
}

// write puts the pending key into its Secret; other data there is left alone.
func (p pendingKey) write(secret *corev1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	put := func(key string, value []byte) {
		if len(value) == 0 {
			delete(secret.Data, key)
			return
		}
		secret.Data[key] = value
	}
	put(csr.KeyPrivateKey, p.key)
	put(keyFingerprint, []byte(p.fingerprint))
	put(keyRequestUID, []byte(p.requestUID))
	put(csr.KeyCertificate, p.certificate)
	put(keyIssuedAt, writeTime(p.issuedAt))
	put(keyMadeAt, writeTime(p.madeAt))
	put(keyAttempt, []byte(strconv.Itoa(p.attempt)))
	put(keyFailure, []byte(p.failure))
}

// readTime is the inverse of writeTime; it returns the zero time for malformed input.
func readTime(value []byte) time.Time {
	at, err := time.Parse(time.RFC3339, string(value))
	if err != nil {
		return time.Time{}
	}
	return at
}

// writeTime writes an instant, the zero instant as nothing.
func writeTime(at time.Time) []byte {
	if at.IsZero() {
		return nil
	}
	return []byte(at.UTC().Format(time.RFC3339))
}

// PendingName returns the name of the Secret in the agent's namespace that holds the pending key of a request. It is
// the same for the same cluster, add-on and signer, whatever the subject, and another one for each agent of a
// namespace: secret is the Secret that keeps the agent's own credential, empty for names.SecretHub.
func PendingName(want csr.Request, secret string) string {
	secret = cmp.Or(secret, names.SecretHub)
	addon := want.Labels[names.LabelAddonName]
	if addon == "" {
		return secret + pendingSuffix
	}
	parts := []string{want.Labels[names.LabelClusterName], addon, want.Signer}
	if secret != names.SecretHub {
		parts = append(parts, secret)
	}
	return addon + "-" + shortHash(parts...) + pendingSuffix
}

// PendingSecret returns the Secret of a pending key before it has a key. It names the agent that made it: its namespace
// and the Secret of its own credential, empty for names.SecretHub.
func PendingSecret(want csr.Request, namespace, secret string) *corev1.Secret {
	pending := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: PendingName(want, secret)}}
	markPending(pending, want, namespace, secret)
	return pending
}

// markPending writes on the Secret of a pending key its labels and which agent made it.
func markPending(pending *corev1.Secret, want csr.Request, namespace, secret string) {
	metav1.SetMetaDataAnnotation(&pending.ObjectMeta, names.AnnotationAgent, namespace+"/"+cmp.Or(secret, names.SecretHub))
	metav1.SetMetaDataLabel(&pending.ObjectMeta, names.LabelCredential, names.CredentialPending)
	for _, name := range []string{names.LabelClusterName, names.LabelAddonName} {
		if value, ok := want.Labels[name]; ok {
			metav1.SetMetaDataLabel(&pending.ObjectMeta, name, value)
		}
	}
}

// IsFormer reports whether the Secret of a pending key may be one that an agent with a credential Secret of another
// name made before the name of the pending key followed from it. Such a Secret has the default name and names no
// agent.
func IsFormer(pending *corev1.Secret) bool {
	return pending != nil && pending.Annotations[names.AnnotationAgent] == ""
}

// fingerprint identifies a request and its hub. It does not depend on the lifetime: a request that a person is about to
// approve is not given up because an option changed.
func fingerprint(want csr.Request, hub string) string {
	raw, err := json.Marshal([]any{
		hub, want.Signer, want.User, sortedSet(want.Groups), sortedSet(want.OrganizationalUnits),
		sortedSet(want.DNSNames), want.Labels,
	})
	if err != nil { // strings, lists and maps of strings always encode
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// requestName returns the name of the request object for a key. Because the name follows from the key, creating the
// object twice is impossible, and an agent that was interrupted finds its request again.
func requestName(want csr.Request, keyPEM []byte) (string, error) {
	key, err := csr.ParseKey(keyPEM)
	if err != nil {
		return "", err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", fmt.Errorf("encoding a public key: %w", err)
	}
	return want.GenerateName + shortHash(string(public)), nil
}

// carriesKey reports whether a request object was made with the key.
func carriesKey(request *certificatesv1.CertificateSigningRequest, keyPEM []byte) bool {
	key, err := csr.ParseKey(keyPEM)
	if err != nil {
		return false
	}
	parsed, err := csr.ParseRequest(request.Spec.Request)
	if err != nil {
		return false
	}
	public, ok := parsed.PublicKey.(*ecdsa.PublicKey)
	return ok && public.Equal(key.Public())
}

// shortHash returns a hash of the parts for use in a name.
func shortHash(parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:])[:hashLength]
}
