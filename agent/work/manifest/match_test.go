package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Shows: work/broken-manifest-keeps
func TestTheEntriesThatAManifestMayMean(t *testing.T) {
	entry := func(group, resource, namespace, name string) workv1.AppliedManifestResourceMeta {
		return workv1.AppliedManifestResourceMeta{ResourceIdentifier: workv1.ResourceIdentifier{
			Group: group, Resource: resource, Namespace: namespace, Name: name,
		}, Version: "v1"}
	}
	const unserved = `{"apiVersion":"x.example/v1","kind":"X","metadata":{"name":"x","namespace":"ns"}}`
	for name, c := range map[string]struct {
		raw   string
		entry workv1.AppliedManifestResourceMeta
		want  bool
	}{
		"the object itself":                         {configMap, entry("", "configmaps", "ns", "x"), true},
		"another name":                              {configMap, entry("", "configmaps", "ns", "y"), false},
		"another namespace":                         {configMap, entry("", "configmaps", "other", "x"), false},
		"another resource":                          {configMap, entry("", "secrets", "ns", "x"), false},
		"another group":                             {configMap, entry("x.example", "configmaps", "ns", "x"), false},
		"a kind that is not served":                 {unserved, entry("x.example", "xs", "ns", "x"), true},
		"such a kind, with a typing error in group": {unserved, entry("y.example", "xs", "ns", "x"), true},
		"such a kind, of an odd plural, likewise":   {strings.ReplaceAll(unserved, `"X"`, `"Gateway"`), entry("y.example", "gateways", "ns", "x"), true},
		"such a kind beside one of another group":   {unserved, entry("", "services", "ns", "x"), false},
		"a served kind that lost its namespace":     {strings.ReplaceAll(configMap, `,"namespace":"ns"`, ""), entry("", "configmaps", "ns", "x"), true},
		"such a kind, of another name":              {strings.ReplaceAll(configMap, `,"namespace":"ns"`, ""), entry("", "configmaps", "ns", "y"), false},
		"such a kind, another resource":             {strings.ReplaceAll(configMap, `,"namespace":"ns"`, ""), entry("", "secrets", "ns", "x"), false},
		"an apiVersion that lost its version":       {`{"apiVersion":"y.example","kind":"X","metadata":{"name":"x","namespace":"ns"}}`, entry("y.example", "xs", "ns", "x"), true},
		"such a kind of another name":               {unserved, entry("x.example", "xs", "ns", "y"), false},
		"such a kind of another namespace":          {unserved, entry("x.example", "xs", "other", "x"), false},
		"such a kind without a namespace":           {unserved, entry("x.example", "xs", "", "x"), true},
		"a manifest without a namespace":            {`{"apiVersion":"x.example/v1","kind":"X","metadata":{"name":"x"}}`, entry("x.example", "xs", "ns", "x"), true},
		"a manifest without a name":                 {`{"apiVersion":"v1","kind":"ConfigMap"}`, entry("", "configmaps", "ns", "x"), true},
		"a manifest without a name, another group":  {`{"apiVersion":"v1","kind":"ConfigMap"}`, entry("apps", "deployments", "ns", "x"), false},
		"a manifest without a version":              {`{"kind":"X","metadata":{"name":"x"}}`, entry("x.example", "xs", "ns", "x"), true},
		"a manifest without a version, of a name":   {`{"kind":"X","metadata":{"name":"x"}}`, entry("x.example", "xs", "ns", "y"), false},
		"a manifest that cannot be decoded":         {`{`, entry("x.example", "xs", "ns", "x"), true},
		"a manifest that is no object but has some": {`{"metadata":{"name":"x"}}`, entry("x.example", "xs", "ns", "y"), false},
	} {
		t.Run(name, func(t *testing.T) {
			m := read(t, c.raw)[0]
			assert.Equal(t, c.want, m.CouldBe(c.entry))
		})
	}
}

func TestTheObjectToSend(t *testing.T) {
	raw := []byte(`{"apiVersion":"v1","kind":"X","metadata":{"name":"x","namespace":"ns","uid":"u","resourceVersion":"7",` +
		`"creationTimestamp":null,"managedFields":[],"labels":{"a":"b"}},"data":{"k":1}}`)
	m := Manifest{Namespaced: true}
	object, err := m.Object(raw)
	require.NoError(t, err)
	metadata := map[string]any{
		"name": "x", "namespace": "ns", "resourceVersion": "7", "labels": map[string]any{"a": "b"},
	}
	assert.Equal(t, map[string]any{
		"apiVersion": "v1", "kind": "X", "metadata": metadata, "data": map[string]any{"k": int64(1)},
	}, object.Object)
	m.Namespaced = false
	object, err = m.Object(raw)
	require.NoError(t, err)
	assert.Empty(t, object.GetNamespace())
	for _, raw := range []string{"{", "null", "[]", `{"a":1}`} {
		_, err = m.Object([]byte(raw))
		require.ErrorContains(t, err, "the manifest cannot be decoded", raw)
	}
}

func TestWhatIsReadOfAManifest(t *testing.T) {
	m := Parse(0, []byte(`{"apiVersion":"v1","metadata":{"name":"x","namespace":"ns"}}`))
	assert.Equal(t, "x", m.Name, "as much as it has")
	assert.Equal(t, "ns", m.Namespace)
	assert.Equal(t, "v1", m.GVK.Version)
	assert.Empty(t, m.GVK.Kind)
	m = Parse(0, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x-","name":"y"}}`))
	require.NoError(t, m.Err, "a name is enough")
	m = Parse(0, []byte(`null`))
	assert.Equal(t, schema.GroupVersionKind{}, m.GVK)
}

func TestTheDigestOfWhatIsRead(t *testing.T) {
	feedback := []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}}
	rules := []workv1.ConditionRule{{Condition: "Complete"}}
	resolve := func(config workv1.ManifestConfigOption) Manifest {
		spec := &workv1.ManifestWorkSpec{ManifestConfigs: []workv1.ManifestConfigOption{config}}
		spec.ManifestConfigs[0].ResourceIdentifier = workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "ns", Name: "x"}
		spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(configMap)}}}
		m := Parse(0, []byte(configMap))
		m.Resolve(mapper(), spec, usable)
		require.NoError(t, m.Err)
		return m
	}
	assert.Zero(t, resolve(workv1.ManifestConfigOption{}).Reads)
	digests := map[Digest]bool{}
	for _, config := range []workv1.ManifestConfigOption{
		{FeedbackRules: feedback}, {ConditionRules: rules}, {FeedbackRules: feedback, ConditionRules: rules},
	} {
		m := resolve(config)
		digests[m.Reads] = true
		assert.Equal(t, len(config.ConditionRules) > 0, m.Options.Completable())
	}
	assert.Len(t, digests, 3)
	assert.NotContains(t, digests, Digest{})
	assert.False(t, (&Options{Rules: []workv1.ConditionRule{{Condition: "Healthy"}}}).Completable())

	assert.Zero(t, DigestOf(nil))
	assert.Zero(t, DigestOf(func() {}), "what is no JSON")
	assert.NotZero(t, DigestOf(map[string]any{}))
	assert.Equal(t, DigestOf(map[string]any{"a": 1, "b": 2}), DigestOf(map[string]any{"b": 2, "a": 1}))
}

func TestTheFirstRulesOfAnObjectCount(t *testing.T) {
	id := ID{Resource: "configmaps", Namespace: "ns", Name: "x"}
	identifier := workv1.ResourceIdentifier(id)
	first, second := []workv1.ConditionRule{{Condition: "First"}}, []workv1.ConditionRule{{Condition: "Second"}}
	one, two := []workv1.FeedbackRule{{Type: "one"}}, []workv1.FeedbackRule{{Type: "two"}}
	got := optionsFor([]workv1.ManifestConfigOption{
		{ResourceIdentifier: identifier}, {ResourceIdentifier: identifier, ConditionRules: first, FeedbackRules: one},
		{ResourceIdentifier: identifier, ConditionRules: second, FeedbackRules: two},
	}, id)
	assert.Equal(t, first, got.Rules)
	assert.Equal(t, one, got.Feedback)
	for name, other := range map[string]workv1.ResourceIdentifier{
		"another group":     {Group: "g", Resource: "configmaps", Namespace: "ns", Name: "x"},
		"another resource":  {Resource: "secrets", Namespace: "ns", Name: "x"},
		"another namespace": {Resource: "configmaps", Namespace: "other", Name: "x"},
		"another name":      {Resource: "configmaps", Namespace: "ns", Name: "y"},
	} {
		got := optionsFor([]workv1.ManifestConfigOption{{ResourceIdentifier: other, ConditionRules: first}}, id)
		assert.Empty(t, got.Rules, name)
	}
}

func TestStarsInNames(t *testing.T) {
	for pattern, texts := range map[string]map[string]bool{
		"a":       {"a": true, "b": false, "": false, "aa": false},
		"*":       {"": true, "a": true},
		"a*":      {"a": true, "ab": true, "ba": false, "": false},
		"*a":      {"a": true, "ba": true, "ab": false},
		"a*a":     {"a": false, "aa": true, "aba": true, "ab": false},
		"a*b*c":   {"abc": true, "axbxc": true, "ac": false, "acb": false, "abxc": true},
		"*ab*ab*": {"abab": true, "ab": false, "xabxabx": true, "aab": false},
	} {
		for text, want := range texts {
			assert.Equal(t, want, glob(pattern, text), "%q and %q", pattern, text)
		}
	}
}
