package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"slices"
	"time"
)

const (
	// authorityLife and servingLife are how long certificates are valid.
	authorityLife, servingLife = 10 * 365 * 24 * time.Hour, 365 * 24 * time.Hour
	// authorityRenewal is how long before its end an authority is replaced; it is longer than a serving certificate lives.
	authorityRenewal = 2 * servingLife
	// backdated is how much earlier than now a certificate begins, for clocks that differ.
	backdated = 5 * time.Minute
	// activationDelay is how long a new authority is trusted before it signs, unless nothing else can be served.
	activationDelay = time.Hour
)

// Kept is what the Secret holds, as far as it can be used.
type Kept struct {
	// Trusted are the authorities that the API server is to trust. The first is the one that signs.
	Trusted []*x509.Certificate
	// AuthorityKey is the key of the first authority; nil when there is none that fits.
	AuthorityKey *ecdsa.PrivateKey
	// Serving is the serving certificate; nil when there is none with a key that fits.
	Serving *x509.Certificate
}

// Plan says what is to be made anew, and when to look again.
type Plan struct {
	// Authority asks for a new authority; KeepTrusted keeps the former ones trusted beside it.
	Authority, KeepTrusted bool
	// Serving asks for a new serving certificate.
	Serving bool
	// Next is when something is due next, provided that what is asked for was made.
	Next time.Time
}

// Decide returns what must be made so that a webhook can serve under the given names.
func Decide(k Kept, names []string, now time.Time) Plan {
	var p Plan
	if !canSign(k, now) {
		return Plan{Authority: true, Serving: true, Next: now.Add(servingLife * 2 / 3)}
	}
	authority := k.Trusted[0]
	p.Authority = !now.Before(authority.NotAfter.Add(-authorityRenewal))
	p.KeepTrusted = p.Authority
	usable := k.Serving != nil && covers(k.Serving, names) && now.Before(k.Serving.NotAfter) &&
		!now.Before(k.Serving.NotBefore) && signedByAny(k.Serving, k.Trusted)
	if !usable {
		p.Serving, p.Next = true, now.Add(servingLife*2/3)
		return p
	}
	due := k.Serving.NotBefore.Add(k.Serving.NotAfter.Sub(k.Serving.NotBefore) * 2 / 3)
	signs := authority.NotBefore.Add(backdated + activationDelay)
	if p.Authority {
		signs = now.Add(activationDelay)
	}
	if !now.Before(due) && !now.Before(signs) {
		p.Serving, p.Next = true, now.Add(servingLife*2/3)
		return p
	}
	p.Next = latest(due, signs)
	if renewal := authority.NotAfter.Add(-authorityRenewal); !p.Authority && renewal.Before(p.Next) {
		p.Next = renewal
	}
	return p
}

// canSign reports whether there is an authority that can sign a serving certificate of full length.
func canSign(k Kept, now time.Time) bool {
	if len(k.Trusted) == 0 || k.AuthorityKey == nil {
		return false
	}
	authority := k.Trusted[0]
	return !now.Before(authority.NotBefore) && now.Add(servingLife).Before(authority.NotAfter)
}

// covers reports whether a certificate is for all names.
func covers(certificate *x509.Certificate, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return certificate.VerifyHostname(name) != nil })
}

// signedByAny reports whether one of the authorities signed a certificate.
func signedByAny(certificate *x509.Certificate, authorities []*x509.Certificate) bool {
	return slices.ContainsFunc(authorities, func(authority *x509.Certificate) bool {
		return bytes.Equal(certificate.RawIssuer, authority.RawSubject) && certificate.CheckSignatureFrom(authority) == nil
	})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
