package work

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
)

func TestAnswersToADeletion(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		answer     string
		gone       bool
		since      time.Time
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
			answer: `{"kind":"Pod","metadata":{"uid":"u","deletionTimestamp":"2026-01-02T03:04:05Z"},"status":{}}`, since: since,
		},
		"finalizers hold it": {
			answer: `{"kind":"X","metadata":{"uid":"u","deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["f"]}}`,
			since:  since, finalizers: []string{"f"},
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
			d := departed([]byte(c.answer))
			assert.Equal(t, c.gone, d.gone)
			assert.True(t, c.since.Equal(d.since))
			assert.Equal(t, c.finalizers, d.finalizers)
		})
	}
}

func TestSegments(t *testing.T) {
	assert.Equal(t, []string{"api", "v1", "namespaces", "ns", "configmaps", "a"},
		segments(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, thing("a")))
	assert.Equal(t, []string{"apis", "work.open-cluster-management.io", "v1", "appliedmanifestworks", "x"},
		segments(appliedResource(), identity{Name: "x"}))
}

func TestErrorsAreToldPlainly(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no"))
	assert.Equal(t, refusal.Error(), tellable(errors.Join(refusal)))
	assert.Equal(t, "the API server did not answer", tellable(errors.New("read tcp 10.0.0.1:53112: reset")))
}

func TestLabelsOfTheWorkAreCopied(t *testing.T) {
	type labels = map[string]string
	for name, c := range map[string]struct {
		have, work labels
		copied     string
		want       labels
		noted      string
	}{
		"new ones come":               {nil, labels{"b": "1", "a": "1"}, "", labels{"a": "1", "b": "1"}, "a,b"},
		"others are replaced":         {labels{"a": "0"}, labels{"a": "1"}, "a", labels{"a": "1"}, "a"},
		"those that it lost go":       {labels{"a": "0", "b": "0"}, labels{"b": "0"}, "a,b", labels{"b": "0"}, "b"},
		"those of others stay":        {labels{"a": "0", "x": "0"}, nil, "a", labels{"x": "0"}, ""},
		"what nobody noted stays":     {labels{"a": "0"}, labels{"b": "1"}, "", labels{"a": "0", "b": "1"}, "b"},
		"a work without labels, none": {nil, nil, "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			applied := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Labels: c.have}}
			if c.copied != "" {
				applied.Annotations = labels{AnnotationLabels: c.copied}
			}
			copyLabels(applied, c.work)
			assert.Equal(t, c.want, applied.Labels)
			assert.Equal(t, c.noted, applied.Annotations[AnnotationLabels])
		})
	}
}
