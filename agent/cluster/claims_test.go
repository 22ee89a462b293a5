package cluster

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// claimsNamed returns a claim for each name, with a value that says where it is from; "-" before a name hides it.
func claimsNamed(from string, called ...string) []claim {
	var claims []claim
	for _, name := range called {
		bare, hidden := strings.CutPrefix(name, "-")
		claims = append(claims, claim{name: bare, value: from, hidden: hidden})
	}
	return claims
}

// Shows: registration/cluster-status
func TestClaims(t *testing.T) {
	all := []string{
		"zeta", "product.open-cluster-management.io", "alpha", "id.k8s.io", "-secret", "x.reserved.example.com", "beta",
	}
	tests := map[string]struct {
		rules              ClaimRules
		claims, properties []string
		want               string
	}{
		"reserved first, both parts ordered by name": {
			rules: ClaimRules{MaxCustom: 20}, claims: all,
			want: "id.k8s.io=c product.open-cluster-management.io=c alpha=c beta=c x.reserved.example.com=c zeta=c",
		},
		"only the others are limited": {
			rules: ClaimRules{MaxCustom: 1}, claims: all,
			want: "id.k8s.io=c product.open-cluster-management.io=c alpha=c",
		},
		"a suffix reserves": {
			rules: ClaimRules{MaxCustom: 1, ReservedSuffixes: []string{".reserved.example.com"}}, claims: all,
			want: "id.k8s.io=c product.open-cluster-management.io=c x.reserved.example.com=c alpha=c",
		},
		"an empty suffix reserves nothing": {
			rules: ClaimRules{MaxCustom: 1, ReservedSuffixes: []string{""}}, claims: []string{"a", "b"}, want: "a=c",
		},
		"a negative limit is none": {
			rules: ClaimRules{MaxCustom: -1}, claims: all, want: "id.k8s.io=c product.open-cluster-management.io=c",
		},
		"properties follow the same rules": {
			rules: ClaimRules{MaxCustom: 1}, properties: all,
			want: "id.k8s.io=p product.open-cluster-management.io=p alpha=p",
		},
		"a property wins over the claim of its name": {
			rules: ClaimRules{MaxCustom: 20}, claims: []string{"a", "b"}, properties: []string{"b", "c"}, want: "a=c b=p c=p",
		},
		"the limit counts a name once": {
			rules: ClaimRules{MaxCustom: 2}, claims: []string{"a", "b"}, properties: []string{"a", "b"}, want: "a=p b=p",
		},
		"a property that stays on the spoke leaves the claim": {
			rules: ClaimRules{MaxCustom: 20}, claims: []string{"a"}, properties: []string{"-a"}, want: "a=c",
		},
		"the version of the agent is its own, and reserved": {
			rules: ClaimRules{MaxCustom: 1, AgentVersion: "v1"}, claims: []string{"zone", names.ClaimAgentVersion, "z"},
			want: "agent-version.spokelet.io=v1 z=c",
		},
		"nothing is nothing": {rules: ClaimRules{MaxCustom: 20}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range tc.rules.report(claimsNamed("c", tc.claims...), claimsNamed("p", tc.properties...)) {
				got = append(got, c.Name+"="+c.Value)
			}
			assert.Equal(t, tc.want, strings.Join(got, " "))
		})
	}
}

func TestAClaimThatTheHubWouldRefuseIsLeftOut(t *testing.T) {
	tests := map[string]struct {
		object string
		want   claim
		fails  string
	}{
		"a claim": {`{"metadata":{"name":"a"},"spec":{"value":"v"}}`, claim{name: "a", value: "v"}, ""},
		"a claim for the spoke alone": {
			`{"metadata":{"name":"a","labels":{"open-cluster-management.io/spoke-only":""}},"spec":{"value":"v"}}`,
			claim{name: "a", hidden: true}, "",
		},
		"no spec":                  {`{"metadata":{"name":"a"}}`, claim{}, "no value"},
		"an empty value":           {`{"metadata":{"name":"a"},"spec":{"value":""}}`, claim{}, "no value"},
		"a value that is no text":  {`{"metadata":{"name":"a"},"spec":{"value":7}}`, claim{}, "reading its value"},
		"a spec that is no object": {`{"metadata":{"name":"a"},"spec":"x"}`, claim{}, "reading its value"},
		"a value that is too long": {
			`{"metadata":{"name":"a"},"spec":{"value":"` + strings.Repeat("ä", 1025) + `"}}`, claim{},
			"has 1025 characters, and the hub takes 1024 at most",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := claimOf(object(t, tc.object))
			assert.Equal(t, tc.want, got)
			if tc.fails == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tc.fails)
		})
	}
}

func object(t *testing.T, raw string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(raw), &o.Object))
	return o
}

// FuzzClaims feeds whatever a managed cluster may hold to the readers of claims and of their definition: nothing
// panics, and nothing is reported that the API of the hub refuses.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"value":"v"}}`, `{"metadata":[],"spec":{"value":{}}}`, `{}`,
		`{"spec":{"versions":[{"name":"v1alpha1","served":true},7]},"status":{"conditions":[{"type":"Established"},null]}}`,
		`{"spec":{"value":"` + strings.Repeat("x", 1025) + `"},"metadata":{"name":"a"}}`, `{"metadata":{"labels":{"a":1}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		o := &unstructured.Unstructured{}
		if json.Unmarshal(raw, &o.Object) != nil || o.Object == nil {
			return
		}
		served, err := definitionOf(o)
		require.NoError(t, err)
		served.serves([]string{"v1alpha1", ""})
		c, err := claimOf(o)
		if err != nil {
			return
		}
		for _, reported := range (ClaimRules{MaxCustom: 20}).report([]claim{c}, []claim{c}) {
			require.Equal(t, clusterv1.ManagedClusterClaim{Name: c.name, Value: c.value}, reported)
			require.NotEmpty(t, reported.Value)
			require.LessOrEqual(t, utf8.RuneCountInString(reported.Value), 1024, "%q", raw)
		}
	})
}
