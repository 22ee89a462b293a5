package work

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// object parses YAML as the API server would give it back.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, o.UnmarshalJSON(raw))
	return o
}

// Row: work 6.1 HP tests
func TestWithOwner(t *testing.T) {
	mine := ownerReference("w", "new")
	old := mine
	old.UID, old.APIVersion = "old", "work.open-cluster-management.io/v1alpha1"
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "w"}
	for name, c := range map[string]struct {
		refs  []metav1.OwnerReference
		owned bool
		want  []metav1.OwnerReference
	}{
		"added":                     {nil, true, []metav1.OwnerReference{mine}},
		"replaced in place":         {[]metav1.OwnerReference{old, foreign}, true, []metav1.OwnerReference{mine, foreign}},
		"kept once":                 {[]metav1.OwnerReference{mine, old}, true, []metav1.OwnerReference{mine}},
		"removed":                   {[]metav1.OwnerReference{old, foreign}, false, []metav1.OwnerReference{foreign}},
		"another kind is not meant": {[]metav1.OwnerReference{foreign}, false, []metav1.OwnerReference{foreign}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, withOwner(c.refs, mine, c.owned)) })
	}
}

func TestFingerprint(t *testing.T) {
	base := func() *metav1.ObjectMeta {
		return &metav1.ObjectMeta{
			Labels: map[string]string{"a": "1", "b": "2"}, Annotations: map[string]string{"c": "3"},
			OwnerReferences: []metav1.OwnerReference{ownerReference("w", "u")}, Finalizers: []string{"f"},
		}
	}
	want := fingerprint(base())
	assert.Equal(t, want, fingerprint(base()))
	for name, change := range map[string]func(*metav1.ObjectMeta){
		"a label":                     func(m *metav1.ObjectMeta) { m.Labels["a"] = "2" },
		"a label made an annotation":  func(m *metav1.ObjectMeta) { delete(m.Labels, "b"); m.Annotations["b"] = "2" },
		"an owner":                    func(m *metav1.ObjectMeta) { m.OwnerReferences[0].UID = types.UID("v") },
		"a finalizer":                 func(m *metav1.ObjectMeta) { m.Finalizers = nil },
		"the mark of being deleted":   func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{} },
		"a value that moves to a key": func(m *metav1.ObjectMeta) { m.Labels = map[string]string{"a": "1b", "": "2"} },
	} {
		t.Run(name, func(t *testing.T) {
			changed := base()
			change(changed)
			assert.NotEqual(t, want, fingerprint(changed))
		})
	}
	moved := base()
	moved.ResourceVersion, moved.Generation = "9", 9
	assert.Equal(t, want, fingerprint(moved), "versions are not part of it")
}

func TestRefusedManifestsAreTriedNowAndThen(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	refused := &task{manifest: &manifest{name: "x"}, prior: record{checked: now, failure: &failure{}}}
	again := refused.retryAt()
	assert.False(t, again.Before(now.Add(recheckPause)))
	assert.False(t, again.After(now.Add(2*recheckPause)))
	assert.Equal(t, again, recorded(refused).wake)
	assert.Zero(t, (&task{manifest: &manifest{name: "x"}, prior: record{checked: now}}).retryAt())
}
