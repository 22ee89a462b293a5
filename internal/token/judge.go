package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/csr"
)

// maxToken is the longest token that is parsed, in bytes; those of Kubernetes have about one thousand.
const maxToken = 64 << 10

// Claims are the claims in a token.
type Claims struct {
	// Subject is the user name.
	Subject string
	// IssuedAt and ExpiresAt bound its lifetime.
	IssuedAt, ExpiresAt time.Time
	// ServiceAccountUID distinguishes the ServiceAccount from others that had or get its name.
	ServiceAccountUID types.UID
}

// Parse decodes the claims of a token without verifying it: the hub does that. The error names the part that is missing
// and never quotes the token.
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
	var claims struct {
		Subject    string   `json:"sub"`
		IssuedAt   *float64 `json:"iat"`
		ExpiresAt  *float64 `json:"exp"`
		Kubernetes struct {
			ServiceAccount struct {
				UID types.UID `json:"uid"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	if err := json.Unmarshal(raw, &claims); err != nil {
		return Claims{}, errors.New("the claims of the token cannot be read")
	}
	issued, okIssued := instant(claims.IssuedAt)
	expires, okExpires := instant(claims.ExpiresAt)
	if !okIssued || !okExpires {
		return Claims{}, errors.New("the token does not say from when to when it is valid (iat, exp)")
	}
	return Claims{
		Subject: claims.Subject, IssuedAt: issued, ExpiresAt: expires,
		ServiceAccountUID: claims.Kubernetes.ServiceAccount.UID,
	}, nil
}

// instant turns seconds since 1970 into an instant; false if it is out of range.
func instant(seconds *float64) (time.Time, bool) {
	if seconds == nil || math.IsNaN(*seconds) || *seconds < 0 || *seconds > math.MaxInt32*100.0 {
		return time.Time{}, false
	}
	return time.Unix(int64(*seconds), 0).UTC(), true
}

// Verdict is the judgement on a stored token at one instant.
type Verdict struct {
	// Fits reports whether the token is usable: of the ServiceAccount as it is now, not expired.
	Fits bool
	// Why is the problem, for people; empty when Fits.
	Why string
	// IssuedAt and ExpiresAt bound its lifetime.
	IssuedAt, ExpiresAt time.Time
	// RotateAt is the instant at which it is to be replaced.
	RotateAt time.Time
}

// Due reports whether a token that fits is to be replaced.
func (v Verdict) Due(now time.Time) bool { return !now.Before(v.RotateAt) }

// Judge returns the verdict on a stored token with these claims, which must be for a user and for the ServiceAccount
// with the UID that the hub published. seed is the token and its owner, such as cluster and add-on; it determines the
// instant of rotation.
func (c Claims) Judge(user string, uid types.UID, now time.Time, seed ...string) Verdict {
	v := Verdict{IssuedAt: c.IssuedAt, ExpiresAt: c.ExpiresAt}
	v.RotateAt = csr.RotateAt(c.IssuedAt, c.ExpiresAt, seed...)
	switch {
	case c.Subject != user:
		v.Why = fmt.Sprintf("the token is for user %q, wanted is %q", c.Subject, user)
	case c.ServiceAccountUID != uid:
		v.Why = fmt.Sprintf("the token is for an earlier ServiceAccount (UID %s), the one of now has UID %s",
			c.ServiceAccountUID, uid)
	case !c.ExpiresAt.After(c.IssuedAt):
		v.Why = "the token expires before it was issued"
	case !now.Before(c.ExpiresAt):
		v.Why = fmt.Sprintf("the token expired at %s", c.ExpiresAt.Format(time.RFC3339))
	}
	v.Fits = v.Why == ""
	return v
}
