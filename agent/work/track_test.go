package work

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	workv1 "open-cluster-management.io/api/work/v1"
)

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

// Row: work 6.1 MC appliedmanifestwork TestSyncManifestWork
func TestStale(t *testing.T) {
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
		"one that says nothing may be any": {[]string{configMap("a"), `{`}, nil},
		"another namespace is another object": {
			[]string{`{"apiVersion":"v1","kind":"X","metadata":{"name":"a","namespace":"other"}}`},
			[]string{"a=1", "b=2", "c=3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, namesOf(stale(read(t, c.manifests...), list)))
		})
	}
}

// Row: work 6.1 MC appliedmanifestwork TestSyncManifestWork
func TestTrack(t *testing.T) {
	manifests := read(t, configMap("here"), configMap("absent"), configMap("unknown"), `{"kind":"ConfigMap"}`)
	results := []result{
		{presence: presencePresent, uid: "new"}, {presence: presenceAbsent}, {presence: presenceUnknown}, {},
	}
	before := []workv1.AppliedManifestResourceMeta{
		entryOf("here", "old"), entryOf("absent", "1"), entryOf("unknown", "2"), entryOf("going", "3"), entryOf("gone", "4"),
	}
	results[3].presence = presenceAbsent // the unreadable one, for a moment, is out of the way
	got := track(manifests, results, before, []workv1.AppliedManifestResourceMeta{entryOf("going", "3")})
	assert.Equal(t, []string{"going=3", "here=new", "unknown=2"}, namesOf(got))
	assert.True(t, slices.IsSortedFunc(got, compareEntries))

	results[3].presence = presenceUnknown
	got = track(manifests, results, before, nil)
	assert.Equal(t, []string{"absent=1", "going=3", "gone=4", "here=new", "unknown=2"}, namesOf(got),
		"a manifest that cannot be read keeps all that it may mean")
	assert.Empty(t, track(manifests[1:2], results[1:2], nil, []workv1.AppliedManifestResourceMeta{entryOf("x", "")}),
		"a pending intent does not enter the list")
}

func TestIntent(t *testing.T) {
	applied := &workv1.AppliedManifestWork{}
	manifests := read(t, configMap("a"), configMap("b"), configMap("c"), `{"kind":"X"}`)
	tasks := make([]task, len(manifests))
	for i := range manifests {
		tasks[i] = task{manifest: &manifests[i]}
	}
	manifests[2].option.strategy.Type = workv1.UpdateStrategyTypeReadOnly
	intent, wider := widen(tasks, applied)
	assert.True(t, wider)
	assert.Equal(t, []string{"a=", "b="}, namesOf(intent), "neither read-only nor unreadable manifests make anything")
	setIntent(applied, intent)
	assert.JSONEq(t, `["/v1/configmaps/ns/a","/v1/configmaps/ns/b"]`, applied.Annotations[AnnotationIntent])
	assert.Equal(t, intent, intentOf(applied))
	_, wider = widen(tasks, applied)
	assert.False(t, wider, "what stands there already is not written again")

	applied.Status.AppliedResources = []workv1.AppliedManifestResourceMeta{entryOf("a", "1")}
	assert.Equal(t, []string{"a=1", "b="}, namesOf(tracked(applied)), "the status wins, the intent adds")

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
		assert.Equal(t, []string{"a=1"}, namesOf(tracked(applied)), odd)
	}
	assert.Nil(t, tracked(nil))
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
