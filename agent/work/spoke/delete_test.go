package spoke

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

func TestAnswersToADeletion(t *testing.T) {
	for name, c := range map[string]struct {
		answer     string
		gone       bool
		finalizers []string
	}{
		"a Status means that nothing is left": {
			answer: `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"uid":"u"}}`, gone: true,
		},
		"a Status that is no success does not": {answer: `{"kind":"Status","apiVersion":"v1","status":"Failure"}`},
		"the object as it was means the same": {
			answer: `{"kind":"Service","apiVersion":"v1","metadata":{"uid":"u"},"status":{}}`, gone: true,
		},
		"a deletion timestamp means that it is going": {
			answer: `{"kind":"Pod","metadata":{"uid":"u","deletionTimestamp":"2026-01-02T03:04:05Z"},"status":{}}`,
		},
		"finalizers hold it": {
			answer:     `{"kind":"X","metadata":{"uid":"u","deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["f"]}}`,
			finalizers: []string{"f"},
		},
		"an object that is called Status is one": {
			answer:     `{"kind":"Status","apiVersion":"example.com/v1","metadata":{"uid":"u","finalizers":["f"]},"status":"Success"}`,
			finalizers: []string{"f"},
		},
		"an answer without sense says nothing":  {answer: `<html>`},
		"an answer without object says nothing": {answer: `{}`},
		"no answer says nothing":                {answer: ``},
	} {
		t.Run(name, func(t *testing.T) {
			d := readDeletion([]byte(c.answer))
			assert.Equal(t, c.gone, d.Gone)
			assert.Equal(t, c.finalizers, d.Finalizers)
		})
	}
}

func TestSegments(t *testing.T) {
	assert.Equal(t, []string{"api", "v1", "namespaces", "ns", "configmaps", "a"},
		Client{}.At(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, manifest.ID{Resource: "configmaps", Namespace: "ns", Name: "a"}).segments())
	assert.Equal(t, []string{"apis", "work.open-cluster-management.io", "v1", "appliedmanifestworks", "x"},
		Client{}.At(schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "appliedmanifestworks"},
			manifest.ID{Name: "x"}).segments())
}
