package token_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/internal/token"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const user = "system:serviceaccount:c1:hello-agent"

// jwt returns a token that says the claims; nobody signed it.
func jwt(claims string) []byte {
	encode := base64.RawURLEncoding.EncodeToString
	return []byte(encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(claims)) + ".c2ln")
}

func claims(subject, uid string, from, to time.Time) string {
	return fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d,"kubernetes.io":{"namespace":"c1","serviceaccount":{"name":"x","uid":%q}}}`,
		subject, from.Unix(), to.Unix(), uid)
}

func TestTheWordsOfTheContract(t *testing.T) {
	ready := token.Ready("c1", "hello", "1234-ab")
	assert.Equal(t, metav1.Condition{
		Type: "TokenInfrastructureReady", Status: "True", Reason: "TokenInfrastructureReady",
		Message: "ServiceAccount c1/hello-agent (UID: 1234-ab) is ready",
	}, *ready)
	assert.Equal(t, metav1.Condition{
		Type: "TokenInfrastructureReady", Status: "False", Reason: "TokenInfrastructureApplyFailed",
		Message: "Failed to apply token infrastructure: forbidden",
	}, *token.NotReady("forbidden"))
	assert.Equal(t, metav1.Condition{
		Type: "TokenRefreshed", Status: "True", Reason: "AddonTokenRefreshed",
		Message: "Addon token refreshed, expires at 2026-11-20T12:00:00Z",
	}, *token.Refreshed(noon))
	assert.Equal(t, metav1.Condition{
		Type: "TokenRefreshed", Status: "False", Reason: "TokenCreationFailed",
		Message: "Failed to create token: no such ServiceAccount",
	}, *token.CreationFailed("no such ServiceAccount"))
	assert.Equal(t, user, token.User("c1", "hello"))
}

func TestReadReady(t *testing.T) {
	tests := map[string]struct {
		change func(c *metav1.Condition)
		uid    types.UID
		ready  bool
	}{
		"what the hub writes is read":       {func(*metav1.Condition) {}, "1234-ab", true},
		"not ready":                         {func(c *metav1.Condition) { c.Status = "False" }, "", false},
		"unknown":                           {func(c *metav1.Condition) { c.Status = "Unknown" }, "", false},
		"another condition":                 {func(c *metav1.Condition) { c.Type = "Other" }, "", false},
		"another add-on's ServiceAccount":   {replace("hello-agent", "hallo-agent"), "", false},
		"another cluster's ServiceAccount":  {replace("c1/", "c2/"), "", false},
		"a name that only begins like ours": {replace("hello-agent ", "hello-agent-2 "), "", false},
		"no UID":                            {replace("1234-ab", ""), "", false},
		"no end of the UID":                 {replace(")", ""), "", false},
		"a UID that is none":                {replace("1234-ab", "a b"), "", false},
		"no message":                        {func(c *metav1.Condition) { c.Message = "" }, "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := token.Ready("c1", "hello", "1234-ab")
			tc.change(c)
			uid, ready := token.ReadReady([]metav1.Condition{*c}, "c1", "hello")
			assert.Equal(t, tc.ready, ready)
			assert.Equal(t, tc.uid, uid)
		})
	}
	_, ready := token.ReadReady(nil, "c1", "hello")
	assert.False(t, ready)
}

func replace(from, to string) func(c *metav1.Condition) {
	return func(c *metav1.Condition) { c.Message = strings.Replace(c.Message, from, to, 1) }
}

func TestJudge(t *testing.T) {
	hour := noon.Add(time.Hour)
	tests := map[string]struct {
		jwt []byte
		now time.Time
		why string
	}{
		"a good token":                         {jwt(claims(user, "u1", noon, hour)), noon, ""},
		"a good token with a newline":          {append(jwt(claims(user, "u1", noon, hour)), '\n'), noon, ""},
		"none":                                 {nil, noon, "there is no token"},
		"no token at all":                      {[]byte("secret words"), noon, "the token is no JSON web token"},
		"claims that are not base64":           {[]byte("a.%%%.c"), noon, "the claims of the token are not encoded as they should be"},
		"claims that are no JSON":              {jwt("{"), noon, "the claims of the token cannot be read"},
		"no expiry":                            {jwt(`{"sub":"x","iat":1}`), noon, "does not say from when to when"},
		"no start":                             {jwt(`{"sub":"x","exp":1}`), noon, "does not say from when to when"},
		"a start before the beginning of time": {jwt(`{"iat":-1,"exp":1}`), noon, "does not say from when to when"},
		"an expiry at the end of time":         {jwt(`{"iat":1,"exp":1e300}`), noon, "does not say from when to when"},
		"another user":                         {jwt(claims("other", "u1", noon, hour)), noon, `is for user "other", wanted is`},
		"a ServiceAccount that was replaced": {
			jwt(claims(user, "u0", noon, hour)), noon, "an earlier ServiceAccount (UID u0), the one of now has UID u1",
		},
		"expired":                     {jwt(claims(user, "u1", noon, hour)), hour, "expired at 2026-11-20T13:00:00Z"},
		"a lifetime that is negative": {jwt(claims(user, "u1", hour, noon)), noon, "expires before it was issued"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := judge(tc.jwt, "u1", tc.now)
			assert.Equal(t, tc.why == "", v.Fits, v.Why)
			assert.Contains(t, v.Why, tc.why)
			assert.NotContains(t, v.Why, "secret", "a token is never told")
		})
	}
}

func TestATokenIsReplacedInTheBand(t *testing.T) {
	for _, lifetime := range []time.Duration{10 * time.Minute, 24 * time.Hour, 365 * 24 * time.Hour} {
		places := map[time.Duration]bool{}
		for n := range 50 {
			raw := jwt(claims(user, fmt.Sprint("u", n), noon, noon.Add(lifetime)))
			v := judge(raw, types.UID(fmt.Sprint("u", n)), noon, "c1", "hello")
			require.True(t, v.Fits, v.Why)
			share := float64(v.RotateAt.Sub(noon)) / float64(lifetime)
			require.InDelta(t, 0.775, share, 0.0251)
			assert.False(t, v.Due(noon))
			assert.True(t, v.Due(v.RotateAt))
			again := judge(raw, types.UID(fmt.Sprint("u", n)), noon.Add(time.Minute), "c1", "hello")
			assert.Equal(t, v.RotateAt, again.RotateAt, "the same at every look")
			places[v.RotateAt.Sub(noon)] = true
		}
		assert.Greater(t, len(places), 40, "tokens that were issued together are not replaced together")
	}
}

func TestTheRoleAllowsOneServiceAccountOnly(t *testing.T) {
	i := token.Render("c1", "hello")
	require.Len(t, i.Role.Rules, 1)
	assert.Equal(t, []string{"hello-agent"}, i.Role.Rules[0].ResourceNames)
	assert.Equal(t, []string{"create"}, i.Role.Rules[0].Verbs)
	assert.Equal(t, []string{"serviceaccounts/token"}, i.Role.Rules[0].Resources)
	assert.Equal(t, "hello-token-role", i.Role.Name)
	assert.Equal(t, i.Role.Name, i.Binding.RoleRef.Name)
	var groups []string
	for _, subject := range i.Binding.Subjects {
		assert.Equal(t, "Group", subject.Kind)
		groups = append(groups, subject.Name)
	}
	assert.Equal(t, []string{"system:open-cluster-management:c1", "open-cluster-management:c1"}, groups)
	for _, labels := range []map[string]string{i.ServiceAccount.Labels, i.Role.Labels, i.Binding.Labels} {
		assert.Equal(t, map[string]string{
			"addon.open-cluster-management.io/name":                 "hello",
			"addon.open-cluster-management.io/token-infrastructure": "true",
		}, labels)
	}
}

// judge parses and judges a token.
func judge(raw []byte, uid types.UID, now time.Time, seed ...string) token.Verdict {
	said, err := token.Parse(raw)
	if err != nil {
		return token.Verdict{Why: err.Error()}
	}
	return said.Judge(user, uid, now, append([]string{string(bytes.TrimSpace(raw))}, seed...)...)
}

func FuzzJudge(f *testing.F) {
	f.Add(jwt(claims(user, "u1", noon, noon.Add(time.Hour))), int64(0))
	f.Add(jwt(`{"iat":1e18,"exp":2e18}`), int64(1<<40))
	f.Add(jwt(`{"iat":"x"}`), int64(-1))
	f.Add([]byte("a.b.c"), int64(7))
	f.Add([]byte(""), int64(0))
	f.Fuzz(func(t *testing.T, raw []byte, seconds int64) {
		now := noon.Add(time.Duration(seconds%(1<<32)) * time.Second)
		v := judge(raw, "u1", now, "c1", "hello")
		if v.Fits != (v.Why == "") {
			t.Fatalf("%v", v)
		}
		said, err := token.Parse(raw)
		if err != nil {
			if v.Fits || !v.RotateAt.IsZero() {
				t.Fatalf("an unreadable token is judged: %v", v)
			}
			return
		}
		if v.Fits && (said.Subject != user || said.ServiceAccountUID != "u1" || !now.Before(said.ExpiresAt)) {
			t.Fatalf("a token of %q fits", said.Subject)
		}
		if v.Fits && (v.RotateAt.Before(said.IssuedAt) || v.RotateAt.After(said.ExpiresAt)) {
			t.Fatalf("is replaced at %s, outside of its life from %s to %s", v.RotateAt, said.IssuedAt, said.ExpiresAt)
		}
	})
}

func FuzzReadReady(f *testing.F) {
	f.Add(token.Ready("c1", "hello", "1234").Message)
	f.Add("ServiceAccount c1/hello-agent (UID: ) is ready")
	f.Add("(UID: (UID: ))")
	f.Fuzz(func(t *testing.T, message string) {
		c := metav1.Condition{Type: token.ConditionInfrastructure, Status: metav1.ConditionTrue, Message: message}
		uid, ready := token.ReadReady([]metav1.Condition{c}, "c1", "hello")
		if ready != (uid != "") {
			t.Fatalf("ready %t with UID %q", ready, uid)
		}
		if strings.ContainsAny(string(uid), " \n()") {
			t.Fatalf("%q is no UID", uid)
		}
	})
}
