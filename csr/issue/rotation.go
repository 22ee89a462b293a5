package issue

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/internal/names"
)

// longestLife is for how long a certificate is in use at most where no longer life was asked for: the default of the
// signer of Kubernetes (--cluster-signing-duration).
const longestLife = 365 * 24 * time.Hour

// pemCertificate is the PEM type of a certificate.
const pemCertificate = "CERTIFICATE"

// Pair is a certificate chain with its private key, both PEM.
type Pair struct {
	// Certificate is the chain, leaf first, as the signer returned it.
	Certificate []byte
	// Key is the private key of the leaf.
	Key []byte
	// IssuedAt is when the agent got the certificate, by the clock of the hub as far as the agent knew it; zero when that
	// is not known. A signer may date a certificate back, by minutes, so the start of its validity says too little about
	// a short-lived one.
	IssuedAt time.Time
}

// PairOf reads the pair of a credential Secret; missing keys, and a Secret that is nil, leave fields empty.
func PairOf(secret *corev1.Secret) Pair {
	if secret == nil {
		return Pair{}
	}
	p := Pair{Certificate: secret.Data[csr.KeyCertificate], Key: secret.Data[csr.KeyPrivateKey]}
	if at, err := time.Parse(time.RFC3339, secret.Annotations[names.AnnotationIssuedAt]); err == nil {
		p.IssuedAt = at.UTC()
	}
	return p
}

// Put writes the pair into a credential Secret; everything else there is left alone.
func (p Pair) Put(secret *corev1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[csr.KeyCertificate], secret.Data[csr.KeyPrivateKey] = p.Certificate, p.Key
	if p.IssuedAt.IsZero() {
		delete(secret.Annotations, names.AnnotationIssuedAt)
		return
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, names.AnnotationIssuedAt, p.IssuedAt.UTC().Format(time.RFC3339))
}

// PairVerdict is the judgement on a pair at one instant.
type PairVerdict struct {
	// Fits is set when the pair is valid for the request: it can be parsed, has its key and the subject, and is not
	// expired.
	Fits bool
	// Why explains the problem to a person; empty when Fits.
	Why string
	// NotBefore and NotAfter bound the validity of the whole chain; zero when the chain could not be read.
	NotBefore, NotAfter time.Time
	// RotateAt is the instant at which the pair is to be replaced; zero when the chain could not be read.
	RotateAt time.Time
}

// Due reports whether a pair that fits is to be replaced.
func (v PairVerdict) Due(now time.Time) bool { return !now.Before(v.RotateAt) }

// JudgePair compares a stored pair with a request. Groups and organizational units are compared as sets; the start
// of the validity is not checked, because the clock of the hub may be ahead of ours.
func JudgePair(pair Pair, want csr.Request, now time.Time) PairVerdict {
	chain, err := parseChain(pair.Certificate)
	if err != nil {
		return PairVerdict{Why: err.Error()}
	}
	v := PairVerdict{NotBefore: chain[0].NotBefore, NotAfter: chain[0].NotAfter}
	for _, c := range chain[1:] {
		if c.NotBefore.After(v.NotBefore) {
			v.NotBefore = c.NotBefore
		}
		if c.NotAfter.Before(v.NotAfter) {
			v.NotAfter = c.NotAfter
		}
	}
	from, to := lifeOf(pair, v, want, now)
	v.RotateAt = csr.RotateAt(from, to, chain[0].SerialNumber.String(), want.Labels[names.LabelClusterName],
		want.Labels[names.LabelAddonName])
	v.Why = misfit(chain[0], pair.Key, want)
	if v.Why == "" && now.After(v.NotAfter) {
		v.Why = fmt.Sprintf("the certificate expired at %s", v.NotAfter.UTC().Format(time.RFC3339))
	}
	v.Fits = v.Why == ""
	return v
}

// lifeOf returns the life of a pair, at a share of which it is replaced. It counts as no longer than any that was asked
// for. A user who may write the Secret can make up a pair that lasts for ever, or begins in a hundred years. Where our
// clock is years behind, one that came begins as late: it counts from when it came.
func lifeOf(pair Pair, v PairVerdict, want csr.Request, now time.Time) (from, to time.Time) {
	from, to = began(pair, v), v.NotAfter
	longest := longestLife
	if want.ExpirationSeconds != nil {
		longest = max(longest, time.Duration(*want.ExpirationSeconds)*time.Second)
	}
	if from.After(now.Add(longest)) {
		if from = pair.IssuedAt; from.IsZero() || from.After(now) {
			return now, now
		}
	}
	if end := from.Add(longest); to.After(end) {
		to = end
	}
	return from, to
}

// ExpiresAt returns when the first certificate of the chain of a pair expires; zero when the chain cannot be read.
func ExpiresAt(pair Pair) time.Time {
	chain, err := parseChain(pair.Certificate)
	if err != nil {
		return time.Time{}
	}
	return slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
}

// IsExpired reports whether a pair can be read and a certificate of its chain is past its end.
func IsExpired(pair Pair, now time.Time) bool {
	end := ExpiresAt(pair)
	return !end.IsZero() && now.After(end)
}

// began is the instant at which the life of a pair began: when it was issued, or, where that is not known or cannot be,
// when it became valid.
func began(pair Pair, v PairVerdict) time.Time {
	if pair.IssuedAt.After(v.NotBefore) && pair.IssuedAt.Before(v.NotAfter) {
		return pair.IssuedAt
	}
	return v.NotBefore
}

// misfit returns the difference of the leaf from the request; empty for none.
func misfit(leaf *x509.Certificate, keyPEM []byte, want csr.Request) string {
	key, err := csr.ParseKey(keyPEM)
	if err != nil {
		return err.Error()
	}
	if public, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(key.Public()) {
		return "the certificate was issued for another private key"
	}
	if leaf.Subject.CommonName != want.User {
		return fmt.Sprintf("the certificate is for user %q, wanted is %q", leaf.Subject.CommonName, want.User)
	}
	if !sameSet(leaf.Subject.Organization, want.Groups) {
		return fmt.Sprintf("the certificate is for groups %q, wanted are %q", leaf.Subject.Organization, want.Groups)
	}
	if !sameSet(leaf.Subject.OrganizationalUnit, want.OrganizationalUnits) {
		return fmt.Sprintf("the certificate has organizational units %q, wanted are %q",
			leaf.Subject.OrganizationalUnit, want.OrganizationalUnits)
	}
	return ""
}

// parseChain decodes every certificate of a PEM file; there is at least one when err is nil.
func parseChain(chainPEM []byte) ([]*x509.Certificate, error) {
	if len(chainPEM) == 0 {
		return nil, errors.New("there is no certificate")
	}
	var chain []*x509.Certificate
	for rest := chainPEM; ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != pemCertificate {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the certificate cannot be read: %w", err)
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, fmt.Errorf("the certificate holds no PEM block of type %s", pemCertificate)
	}
	return chain, nil
}

// sameSet reports whether two lists hold the same strings, whatever their order and repetitions.
func sameSet(a, b []string) bool { return slices.Equal(sortedSet(a), sortedSet(b)) }

// sortedSet returns the distinct strings of list in order.
func sortedSet(list []string) []string {
	set := make(map[string]struct{}, len(list))
	for _, s := range list {
		set[s] = struct{}{}
	}
	return slices.Sorted(maps.Keys(set))
}
