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
	// authorityRenewal is how long before its end an authority is replaced; it exceeds the life of a serving certificate.
	authorityRenewal = 2 * servingLife
	// backdated is how far before now a certificate becomes valid, because clocks differ.
	backdated = 5 * time.Minute
	// activationDelay is how long a new authority is trusted before it signs, unless there is no valid certificate.
	activationDelay = time.Hour
)

// Kept is the usable content of the Secret.
type Kept struct {
	// Trusted are the authorities for the API server. The first one signs.
	Trusted []*x509.Certificate
	// AuthorityKey is the key of the first authority; nil when it is missing or does not match.
	AuthorityKey *ecdsa.PrivateKey
	// Serving is the serving certificate; nil when it is missing or its key does not match.
	Serving *x509.Certificate
}

// Plan lists what must be created, and when to check again.
type Plan struct {
	// Authority requests a new authority; with KeepTrusted, former ones stay trusted.
	Authority, KeepTrusted bool
	// Serving requests a new serving certificate.
	Serving bool
	// Next is when the next renewal is due, provided that the plan was carried out.
	Next time.Time
}

// Decide returns what must be created so that a webhook can serve under the given names.
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

// canSign reports whether the authority can sign a serving certificate of full duration.
func canSign(k Kept, now time.Time) bool {
	if len(k.Trusted) == 0 || k.AuthorityKey == nil {
		return false
	}
	authority := k.Trusted[0]
	return !now.Before(authority.NotBefore) && now.Add(servingLife).Before(authority.NotAfter)
}

// covers reports whether a certificate is valid for all names.
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
