package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/csr"
)

// maxToken is the most bytes of a token that are looked at; those of Kubernetes have about one thousand.
const maxToken = 64 << 10

// Claims is what a token says about itself.
type Claims struct {
	// Subject is the user name.
	Subject string
	// IssuedAt and ExpiresAt bound its lifetime.
	IssuedAt, ExpiresAt time.Time
	// ServiceAccountUID tells the ServiceAccount from others of the same name before and after it.
	ServiceAccountUID types.UID
}

// Parse decodes what a token says about itself, without verifying it: the hub does that. The error says which part is
// missing and never quotes the token.
func Parse(jwt []byte) (Claims, error) {
	jwt = bytes.TrimSpace(jwt)
	if len(jwt) == 0 {
		return Claims{}, errors.New("there is no token")
	}
	parts := bytes.Split(jwt, []byte("."))
	if len(parts) != 3 || len(jwt) > maxToken {
		return Claims{}, errors.New("the token is no JSON web token")
	}
	raw, err := base64.RawURLEncoding.DecodeString(string(parts[1]))
	if err != nil {
		return Claims{}, errors.New("the claims of the token are not encoded as they should be")
	}
	var said struct {
		Subject    string   `json:"sub"`
		IssuedAt   *float64 `json:"iat"`
		ExpiresAt  *float64 `json:"exp"`
		Kubernetes struct {
			ServiceAccount struct {
				UID types.UID `json:"uid"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return Claims{}, errors.New("the claims of the token cannot be read")
	}
	issued, okIssued := instant(said.IssuedAt)
	expires, okExpires := instant(said.ExpiresAt)
	if !okIssued || !okExpires {
		return Claims{}, errors.New("the token does not say from when to when it is valid (iat, exp)")
	}
	return Claims{
		Subject: said.Subject, IssuedAt: issued, ExpiresAt: expires,
		ServiceAccountUID: said.Kubernetes.ServiceAccount.UID,
	}, nil
}

// instant turns seconds since 1970 into an instant; false for what no clock of today shows.
func instant(seconds *float64) (time.Time, bool) {
	if seconds == nil || math.IsNaN(*seconds) || *seconds < 0 || *seconds > math.MaxInt32*100.0 {
		return time.Time{}, false
	}
	return time.Unix(int64(*seconds), 0).UTC(), true
}

// Verdict is the judgement on a stored token at one instant.
type Verdict struct {
	// Fits reports whether the token is usable: readable, of the ServiceAccount as it is now, not expired.
	Fits bool
	// Why says what is wrong, for people; empty when Fits.
	Why string
	// IssuedAt and ExpiresAt bound its lifetime; zero when the token could not be read.
	IssuedAt, ExpiresAt time.Time
	// RotateAt is the instant at which it is to be replaced; zero when the token could not be read.
	RotateAt time.Time
}

// Due reports whether a token that fits is to be replaced.
func (v Verdict) Due(now time.Time) bool { return !now.Before(v.RotateAt) }

// Judge judges a stored token: user is who it must be for and uid the ServiceAccount as the hub told it. Together with
// the token itself, seed chooses the place in the band of rotation; it names the owner, such as cluster and add-on.
func Judge(jwt []byte, user string, uid types.UID, now time.Time, seed ...string) Verdict {
	said, err := Parse(jwt)
	if err != nil {
		return Verdict{Why: err.Error()}
	}
	v := Verdict{IssuedAt: said.IssuedAt, ExpiresAt: said.ExpiresAt}
	parts := slices.Concat([]string{string(bytes.TrimSpace(jwt))}, seed)
	v.RotateAt = csr.RotateAt(said.IssuedAt, said.ExpiresAt, parts...)
	switch {
	case said.Subject != user:
		v.Why = fmt.Sprintf("the token is for user %q, wanted is %q", said.Subject, user)
	case said.ServiceAccountUID != uid:
		v.Why = fmt.Sprintf("the token is for an earlier ServiceAccount (UID %s), the one of now has UID %s",
			said.ServiceAccountUID, uid)
	case !said.ExpiresAt.After(said.IssuedAt):
		v.Why = "the token expires before it was issued"
	case !now.Before(said.ExpiresAt):
		v.Why = fmt.Sprintf("the token expired at %s", said.ExpiresAt.Format(time.RFC3339))
	}
	v.Fits = v.Why == ""
	return v
}
