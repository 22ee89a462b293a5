package inventory

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

// read parses and resolves manifests; only ConfigMaps are served.
func read(t *testing.T, raws ...string) []manifest.Manifest {
	t.Helper()
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	spec := &workv1.ManifestWorkSpec{}
	var list []manifest.Manifest
	for i, raw := range raws {
		spec.Workload.Manifests = append(spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(raw)}})
		list = append(list, manifest.Parse(i, []byte(raw)))
	}
	for i := range list {
		if list[i].Retriable() {
			list[i].Resolve(kinds, spec,
				func(_ schema.GroupVersionKind, rules []workv1.ConditionRule) ([]workv1.ConditionRule, []string) {
					return rules, nil
				})
		}
	}
	return list
}

// configMap is the manifest of a ConfigMap in the namespace ns.
func configMap(name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"ns"}}`
}

// entryOf is a listed ConfigMap in ns.
func entryOf(name, uid string) workv1.AppliedManifestResourceMeta {
	return workv1.AppliedManifestResourceMeta{Version: "v1", UID: uid, ResourceIdentifier: workv1.ResourceIdentifier{
		Resource: "configmaps", Namespace: "ns", Name: name,
	}}
}

// namesOf lists entries as name=uid.
func namesOf(list []workv1.AppliedManifestResourceMeta) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Name+"="+e.UID)
	}
	return out
}

// Shows: work/tracking, work/broken-manifest-keeps
func TestUnwanted(t *testing.T) {
	list := []workv1.AppliedManifestResourceMeta{entryOf("a", "1"), entryOf("b", "2"), entryOf("c", "3")}
	for name, c := range map[string]struct {
		manifests []string
		want      []string
	}{
		"what no manifest means is stale":    {[]string{configMap("a")}, []string{"b=2", "c=3"}},
		"a bad manifest that names another":  {[]string{configMap("a"), `{"kind":"ConfigMap","metadata":{"name":"b"}}`}, []string{"c=3"}},
		"an unserved kind of another group":  {[]string{configMap("a"), `{"apiVersion":"x/v1","kind":"X","metadata":{"name":"b"}}`}, []string{"b=2", "c=3"}},
		"an unserved kind of the same group": {[]string{configMap("a"), `{"apiVersion":"v1","kind":"X","metadata":{"name":"b"}}`}, []string{"c=3"}},
		"a manifest without a name may be any of its group": {
			[]string{configMap("a"), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`}, nil,
		},
		"a manifest that lost its namespace keeps its object": {
			[]string{configMap("a"), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`}, []string{"c=3"},
		},
		"a typing error in the group keeps it, too": {
			[]string{configMap("a"), `{"apiVersion":"core/v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"ns"}}`},
			[]string{"c=3"},
		},
		"and one in the version": {
			[]string{configMap("a"), `{"apiVersion":"v11","kind":"ConfigMap","metadata":{"name":"b","namespace":"ns"}}`},
			[]string{"c=3"},
		},
		"a second manifest of one object is no other object": {
			[]string{configMap("a"), configMap("a")}, []string{"b=2", "c=3"},
		},
		"one that says nothing may be any": {[]string{configMap("a"), `{`}, nil},
		"another namespace is another object": {
			[]string{`{"apiVersion":"v1","kind":"X","metadata":{"name":"a","namespace":"other"}}`},
			[]string{"a=1", "b=2", "c=3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, namesOf(Unwanted(read(t, c.manifests...), list)))
		})
	}
}

// Shows: work/tracking
func TestList(t *testing.T) {
	manifests := read(t, configMap("here"), configMap("absent"), configMap("unknown"), `{"kind":"ConfigMap"}`)
	found := []Found{
		{Presence: manifest.Present, UID: "new"}, {Presence: manifest.Absent}, {Presence: manifest.Unknown}, {},
	}
	before := []workv1.AppliedManifestResourceMeta{
		entryOf("here", "old"), entryOf("absent", "1"), entryOf("unknown", "2"), entryOf("going", "3"), entryOf("gone", "4"),
	}
	found[3].Presence = manifest.Absent // the unreadable one, for a moment, is out of the way
	got := List(manifests, found, before, []workv1.AppliedManifestResourceMeta{entryOf("going", "3")})
	assert.Equal(t, []string{"going=3", "here=new", "unknown=2"}, namesOf(got))
	assert.True(t, slices.IsSortedFunc(got, CompareEntries))

	found[3].Presence = manifest.Unknown
	got = List(manifests, found, before, nil)
	assert.Equal(t, []string{"absent=1", "going=3", "gone=4", "here=new", "unknown=2"}, namesOf(got),
		"a manifest that cannot be read keeps all that it may mean")
	assert.Empty(t, List(manifests[1:2], found[1:2], nil, []workv1.AppliedManifestResourceMeta{entryOf("x", "")}),
		"a pending intent does not enter the list")
}

func TestIntent(t *testing.T) {
	applied := &workv1.AppliedManifestWork{}
	manifests := read(t, configMap("a"), configMap("b"))
	objects := []workv1.AppliedManifestResourceMeta{manifests[0].Entry(""), manifests[1].Entry("")}
	intent, wider := widen(objects, applied)
	assert.True(t, wider)
	assert.Equal(t, []string{"a=", "b="}, namesOf(intent))
	setIntent(applied, intent)
	assert.JSONEq(t, `["/v1/configmaps/ns/a","/v1/configmaps/ns/b"]`, applied.Annotations[AnnotationIntent])
	assert.Equal(t, intent, intentOf(applied))
	_, wider = widen(objects, applied)
	assert.False(t, wider, "what stands there already is not written again")

	applied.Status.AppliedResources = []workv1.AppliedManifestResourceMeta{entryOf("a", "1")}
	assert.Equal(t, []string{"a=1", "b="}, namesOf(Tracked(applied)), "the status wins, the intent adds")

	next := read(t, configMap("a"))
	kept, narrower := narrow(next, applied, []workv1.AppliedManifestResourceMeta{entryOf("b", "")})
	assert.False(t, narrower, "what is pending stays")
	assert.Equal(t, []string{"a=", "b="}, namesOf(kept))
	kept, narrower = narrow(next, applied, nil)
	assert.True(t, narrower)
	assert.Equal(t, []string{"a="}, namesOf(kept))
	setIntent(applied, nil)
	assert.Empty(t, applied.Annotations)
	_, narrower = narrow(next, applied, nil)
	assert.False(t, narrower)

	for _, odd := range []string{"x", "{}", `["a/b"]`, `[1]`} {
		applied.Annotations = map[string]string{AnnotationIntent: odd}
		assert.Equal(t, []string{"a=1"}, namesOf(Tracked(applied)), odd)
	}
	assert.Nil(t, Tracked(nil))
}

func TestIntentFitsTheAnnotation(t *testing.T) {
	var list []workv1.AppliedManifestResourceMeta
	for range 10000 {
		list = append(list, entryOf("a-name-of-some-length", ""))
	}
	applied := &workv1.AppliedManifestWork{}
	setIntent(applied, list)
	assert.LessOrEqual(t, len(applied.Annotations[AnnotationIntent]), maxIntent+len("[]"))
	assert.Greater(t, len(intentOf(applied)), 1000)
}

func TestPrunable(t *testing.T) {
	manifests := read(t, configMap("a"), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"ns"}}`)
	grouped := func(name string) workv1.AppliedManifestResourceMeta {
		entry := entryOf(name, "1")
		entry.Group = "legacy.example.com"
		return entry
	}
	for name, c := range map[string]struct {
		found   Found
		ready   []string
		unknown []string
	}{
		"known objects hold up nothing":          {Found{Presence: manifest.Present, UID: "1"}, []string{"a=1", "b=1", "c=1"}, nil},
		"an object that could not be read does":  {Found{Presence: manifest.Unknown}, []string{"b=1", "c=1"}, []string{"a=1"}},
		"one that may not be read does not":      {Found{Presence: manifest.Unknown, Final: true}, []string{"a=1", "b=1", "c=1"}, nil},
		"an object that does not exist does not": {Found{Presence: manifest.Absent}, []string{"a=1", "b=1", "c=1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found := []Found{c.found, {Presence: manifest.Present, UID: "other"}}
			ready, unknown := Prunable(manifests, found,
				[]workv1.AppliedManifestResourceMeta{grouped("a"), grouped("b"), grouped("c")})
			assert.Equal(t, c.ready, namesOf(ready))
			assert.Equal(t, c.unknown, namesOf(unknown))
		})
	}
	assert.Equal(t, map[types.UID]bool{"1": true}, UIDs([]Found{
		{Presence: manifest.Present, UID: "1"}, {Presence: manifest.Unknown, UID: "2"}, {Presence: manifest.Absent},
	}))
}

// Shows: work/hub-hash
func TestWithOwner(t *testing.T) {
	mine := OwnerReference("w", "new")
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
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, WithOwner(c.refs, mine, c.owned)) })
	}
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

// Shows: work/hub-hash
func TestHubHash(t *testing.T) {
	hash := HubHash("https://hub.example:6443")
	assert.Len(t, hash, 64)
	assert.NotEqual(t, hash, HubHash("https://hub.example:6443/"), "the text counts, not what it means")
	assert.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", HubHash(""))
	assert.Equal(t, hash+"-w", Name(hash, "w"))
}
