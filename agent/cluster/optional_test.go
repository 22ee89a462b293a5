package cluster

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestADefinitionTellsWhatItServes(t *testing.T) {
	const established = `"status":{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}]}`
	both := []string{"v1alpha1", "v1beta1"}
	tests := map[string]struct{ definition, want string }{
		"the preferred version": {
			`{"spec":{"versions":[{"name":"v1beta1","served":true},{"name":"v1alpha1","served":true}]},` + established + `}`,
			"v1alpha1",
		},
		"the other one where the preferred is not served": {
			`{"spec":{"versions":[{"name":"v1alpha1","served":false},{"name":"v1beta1","served":true}]},` + established + `}`,
			"v1beta1",
		},
		"none of a version that only looks alike": {
			`{"spec":{"versions":[{"name":"v1alpha11","served":true}]},` + established + `}`, "",
		},
		"none before it is established": {
			`{"spec":{"versions":[{"name":"v1alpha1","served":true}]},` +
				`"status":{"conditions":[{"type":"Established","status":"False"}]}}`, "",
		},
		"none without a status":         {`{"spec":{"versions":[{"name":"v1alpha1","served":true}]}}`, ""},
		"none of what is no definition": {`{"spec":7,"status":[]}`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := definitionOf(object(t, tc.definition))
			require.NoError(t, err)
			assert.Equal(t, tc.want, d.serves(both))
		})
	}
}

func TestTheVersionToWatchFollowsTheDefinition(t *testing.T) {
	tests := map[string]struct {
		versions         []string
		known, forbidden bool
		want             string
		wantKnown        bool
	}{
		"nothing is known before the first answer": {},
		"without a definition nothing is watched":  {known: true, wantKnown: true},
		"a definition that serves is followed": {
			versions: []string{"v1alpha1"}, known: true, want: "v1alpha1", wantKnown: true,
		},
		"one that does not serve is not":                          {versions: []string{""}, known: true, wantKnown: true},
		"without the right to look, the kind itself is asked for": {forbidden: true, want: "v1alpha1", wantKnown: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k := newOptionalKind(clusterClaims(), func() {}, "v1alpha1")
			var found []*unstructured.Unstructured
			for _, version := range tc.versions {
				found = append(found, object(t, `{"metadata":{"name":"d"},"spec":{"versions":[{"name":"`+version+
					`","served":true}]},"status":{"conditions":[{"type":"Established","status":"True"}]}}`))
			}
			if tc.known {
				k.definition.Replace(t.Context(), found, "1")
			}
			if tc.forbidden {
				k.definition.ended(t.Context(), apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no")))
			}
			version, known := k.version()
			assert.Equal(t, tc.want, version)
			assert.Equal(t, tc.wantKnown, known)
		})
	}
}
