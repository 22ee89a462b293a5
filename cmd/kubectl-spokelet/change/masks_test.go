package change

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestWhatIsMasked(t *testing.T) {
	for sentence, tc := range map[string]struct {
		before, after string
		from, to      string
	}{
		"values of a Secret": {
			before: `{kind: Secret, data: {a: "1", b: "1", gone: "1"}, type: Opaque}`,
			after:  `{kind: Secret, data: {a: "1", b: "2", new: "1"}, type: Opaque}`,
			from:   `{kind: Secret, data: {a: (masked), b: (masked), gone: (masked)}, type: Opaque}`,
			to:     `{kind: Secret, data: {a: (masked), b: "(masked, another value)", new: (masked)}, type: Opaque}`,
		},
		"values that are not text": {
			before: `{kind: Secret, data: {a: [1]}, stringData: [x]}`,
			after:  `{kind: Secret, data: {a: [2]}, stringData: [x]}`,
			from:   `{kind: Secret, data: {a: (masked)}, stringData: (masked)}`,
			to:     `{kind: Secret, data: {a: "(masked, another value)"}, stringData: (masked)}`,
		},
		"annotations of a Secret": {
			before: `{kind: Secret, metadata: {name: s, annotations: {last: x}, labels: {a: b}}}`,
			after:  `{kind: Secret, metadata: {name: s, annotations: {last: y}, labels: {a: c}}}`,
			from:   `{kind: Secret, metadata: {name: s, annotations: {last: (masked)}, labels: {a: b}}}`,
			to:     `{kind: Secret, metadata: {name: s, annotations: {last: "(masked, another value)"}, labels: {a: c}}}`,
		},
		"a Secret in a list is the one of its name": {
			before: `{kind: Work, manifests: [{kind: Secret, metadata: {name: s}, data: {a: "1"}}]}`,
			after:  `{kind: Work, manifests: [{kind: ConfigMap, metadata: {name: c}, data: {a: "1"}}, {kind: Secret, metadata: {name: s}, data: {a: "2"}}]}`,
			from:   `{kind: Work, manifests: [{kind: Secret, metadata: {name: s}, data: {a: (masked)}}]}`,
			to: `{kind: Work, manifests: [{kind: ConfigMap, metadata: {name: c}, data: {a: "1"}}, ` +
				`{kind: Secret, metadata: {name: s}, data: {a: "(masked, another value)"}}]}`,
		},
		"entries of a list of Secrets have no kind": {
			before: `{kind: SecretList, items: [{data: {a: "1"}}]}`, after: `{kind: SecretList, items: [{data: {a: "1"}}]}`,
			from: `{kind: SecretList, items: [{data: {a: (masked)}}]}`, to: `{kind: SecretList, items: [{data: {a: (masked)}}]}`,
		},
		"a text with a Secret in it": {
			before: `{kind: ConfigMap, data: {y: "kind: Secret\ndata: {a: MQ==}", j: '{"kind":"Secret"}', k: '"{\"kind\":\"Secret\"}"', n: "kind: SecretStore"}}`,
			after:  `{kind: ConfigMap, data: {y: "kind: Secret\ndata: {a: Mg==}", j: '{"kind":"Secret"}', k: '"{\"kind\":\"Secret\"}"', n: "kind: SecretStore"}}`,
			from:   `{kind: ConfigMap, data: {y: (masked), j: (masked), k: (masked), n: "kind: SecretStore"}}`,
			to:     `{kind: ConfigMap, data: {y: "(masked, another value)", j: (masked), k: (masked), n: "kind: SecretStore"}}`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			object := func(text string) *unstructured.Unstructured {
				u := &unstructured.Unstructured{}
				require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
				return u
			}
			before, after := object(tc.before), object(tc.after)
			from, to := masks(before, after)
			assert.Equal(t, object(tc.from), from)
			assert.Equal(t, object(tc.to), to)
			assert.Equal(t, object(tc.before), before, "what is compared stays as it is")
		})
	}
}
