package work

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
)

const (
	pathA      = "/api/v1/namespaces/ns/configmaps/a"
	pathWidget = "/apis/example.com/v1/namespaces/ns/widgets/w"
	pathGone   = "/apis/example.com/v1alpha1/namespaces/ns/widgets/w"
	pathCRD    = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
)

// ours is a live object that the AppliedManifestWork with the UID mine owns.
func ours(t *testing.T, uid types.UID) *unstructured.Unstructured {
	t.Helper()
	live := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns, resourceVersion: "7"}}`)
	live.SetUID(uid)
	live.SetOwnerReferences([]metav1.OwnerReference{ownerReference("applied", "mine")})
	return live
}

// widgetEntry is the entry of a widget that was applied in the version v1alpha1.
func widgetEntry() workv1.AppliedManifestResourceMeta {
	return workv1.AppliedManifestResourceMeta{
		Version: "v1alpha1", UID: "live", ResourceIdentifier: workv1.ResourceIdentifier{
			Group: "example.com", Resource: "widgets", Namespace: "ns", Name: "w",
		},
	}
}

// drainerOf returns a drainer over a stub, with a holder that claimed the entries.
func drainerOf(t *testing.T, client spoke, served []schema.GroupVersionKind,
	entries ...workv1.AppliedManifestResourceMeta,
) (*drainer, holder) {
	t.Helper()
	versions := make([]schema.GroupVersion, len(served))
	for i := range served {
		versions[i] = served[i].GroupVersion()
	}
	kinds := meta.NewDefaultRESTMapper(versions)
	for _, kind := range served {
		kinds.Add(kind, meta.RESTScopeNamespace)
	}
	counts, err := newCounters(nil)
	require.NoError(t, err)
	d := &drainer{
		spoke: client, ledger: newLedger(func(holder) {}, func() {}), mapper: kinds, counts: counts, patience: time.Minute,
	}
	h, objects := holder{name: "w"}, map[identity]watchKey{}
	for _, entry := range entries {
		objects[entryIdentity(entry)] = watchKey{resource: entryResource(entry), namespace: entry.Namespace}
	}
	d.ledger.claim(h, objects, nil)
	return d, h
}

// nothingOrphaned deletes everything but the objects with the UIDs.
func nothingOrphaned(applied ...types.UID) exempt {
	not := exempt{orphaned: func(identity) bool { return false }, applied: map[types.UID]bool{}}
	for _, uid := range applied {
		not.applied[uid] = true
	}
	return not
}

func TestDismissal(t *testing.T) {
	widget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	unserved := func(_, path string) (int, any) {
		if strings.HasPrefix(path, "/apis/example.com/v1alpha1/") {
			return http.StatusNotFound, "404 page not found"
		}
		return 0, nil
	}
	for name, c := range map[string]struct {
		entry   workv1.AppliedManifestResourceMeta
		objects map[string]*unstructured.Unstructured
		served  []schema.GroupVersionKind
		answer  func(method, path string) (int, any)
		not     exempt
		pending bool
		fails   string
		asked   []string
	}{
		"what is ours is deleted": {
			entry: entryOf("a", "live"), objects: map[string]*unstructured.Unstructured{pathA: ours(t, "live")},
			asked: []string{"DELETE " + pathA, "GET " + pathA},
		},
		"what is gone is forgotten": {entry: entryOf("a", "live"), asked: []string{"GET " + pathA}},
		"what is orphaned loses its owner": {
			entry: entryOf("a", "live"), objects: map[string]*unstructured.Unstructured{pathA: ours(t, "live")},
			not:   exempt{orphaned: func(identity) bool { return true }},
			asked: []string{"GET " + pathA, "PATCH " + pathA},
		},
		"what was applied under another group is not even read": {
			entry: entryOf("a", "live"), objects: map[string]*unstructured.Unstructured{pathA: ours(t, "live")},
			not: nothingOrphaned("live"),
		},
		"an intent that was applied under another group stays": {
			entry: entryOf("a", ""), objects: map[string]*unstructured.Unstructured{pathA: ours(t, "live")},
			not: nothingOrphaned("live"), asked: []string{"GET " + pathA},
		},
		"what cannot be read stays listed": {
			entry: entryOf("a", "live"), pending: true, fails: "refused: Forbidden", asked: []string{"GET " + pathA},
			answer: func(string, string) (int, any) {
				return http.StatusForbidden, apiRefusal(http.StatusForbidden, metav1.StatusReasonForbidden)
			},
		},
		"an object whose version is not served any more is deleted in another one": {
			entry: widgetEntry(), objects: map[string]*unstructured.Unstructured{pathWidget: ours(t, "live")},
			served: []schema.GroupVersionKind{widget}, answer: unserved,
			asked: []string{"DELETE " + pathWidget, "GET " + pathWidget, "GET " + pathGone},
		},
		"an object that nobody can reach stays listed": {
			entry: widgetEntry(), answer: unserved, pending: true, fails: "serves no version of widgets.example.com",
			objects: map[string]*unstructured.Unstructured{pathCRD: ours(t, "definition")},
			asked:   []string{"GET " + pathCRD, "GET " + pathGone},
		},
		"an object whose kind has no definition any more is gone": {
			entry: widgetEntry(), answer: unserved, asked: []string{"GET " + pathCRD, "GET " + pathGone},
		},
		"a mapper that still names the version finds no other": {
			entry: widgetEntry(), answer: unserved, pending: true, fails: "serves no version of widgets.example.com",
			served:  []schema.GroupVersionKind{{Group: "example.com", Version: "v1alpha1", Kind: "Widget"}},
			objects: map[string]*unstructured.Unstructured{pathCRD: ours(t, "definition")},
			asked:   []string{"GET " + pathCRD, "GET " + pathGone},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.objects == nil {
				c.objects = map[string]*unstructured.Unstructured{}
			}
			if c.not.orphaned == nil {
				c.not = nothingOrphaned()
			}
			s, client := newStub(t, c.objects)
			s.answer = c.answer
			d, h := drainerOf(t, client, c.served, c.entry)
			if c.not.applied == nil {
				c.not.applied = map[types.UID]bool{}
			}
			_, pending, err := d.begin(h, "mine", epoch, c.not).dismiss(t.Context(), c.entry)
			if c.fails == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fails)
			}
			assert.Equal(t, c.pending, pending)
			assert.Equal(t, c.asked, s.requests())
		})
	}
}

func TestAVersionThatIsNotServedAnyMoreIsLookedUpOnceInAPass(t *testing.T) {
	s, client := newStub(t, map[string]*unstructured.Unstructured{})
	var entries []workv1.AppliedManifestResourceMeta
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		entry := widgetEntry()
		entry.Name = name
		entries = append(entries, entry)
	}
	d, h := drainerOf(t, client, nil, entries...)
	s.answer = func(_, path string) (int, any) {
		if path == pathCRD {
			return 0, nil
		}
		return http.StatusNotFound, "404 page not found"
	}
	left := d.drain(t.Context(), h, "mine", epoch, entries, nothingOrphaned())
	require.NoError(t, left.err)
	assert.Empty(t, left.pending)
	assert.Len(t, s.requests(), len(entries)+1)
}

func TestAnObjectThatIsKnownIsDeletedWithOneRequest(t *testing.T) {
	for name, c := range map[string]struct {
		applied []types.UID
		asked   []string
	}{
		"deleted":                     {nil, []string{"DELETE " + pathA}},
		"wanted under another group":  {[]types.UID{"live"}, []string{"GET " + pathA}},
		"while another one is wanted": {[]types.UID{"other"}, []string{"DELETE " + pathA}},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newStub(t, map[string]*unstructured.Unstructured{pathA: ours(t, "live")})
			entry := entryOf("a", "") // an intent, whose UID the status has not taken over yet
			d, h := drainerOf(t, client, nil, entry)
			d.ledger.note(h, entryIdentity(entry), record{exists: true, uid: "live", version: "7", sole: true})
			_, pending, err := d.begin(h, "mine", epoch, nothingOrphaned(c.applied...)).dismiss(t.Context(), entry)
			require.NoError(t, err)
			assert.False(t, pending)
			assert.Equal(t, c.asked, s.requests())
		})
	}
}

func TestAPodIsNotReadAgainAndAgainWhileItsGraceRuns(t *testing.T) {
	const grace = 90 * time.Second
	pod := ours(t, "live")
	s, client := newStub(t, map[string]*unstructured.Unstructured{pathA: pod})
	s.answer = func(method, _ string) (int, any) {
		if method != http.MethodDelete {
			return 0, nil
		}
		ends := metav1.NewTime(epoch.Add(grace))
		pod.SetDeletionTimestamp(&ends)
		seconds := int64(grace / time.Second)
		pod.SetDeletionGracePeriodSeconds(&seconds)
		return http.StatusOK, pod.Object
	}
	entries := []workv1.AppliedManifestResourceMeta{entryOf("a", "live")}
	d, h := drainerOf(t, client, nil, entries...)
	passes := 0
	for now := epoch; now.Before(epoch.Add(grace)); passes++ {
		require.Less(t, passes, 10, "it is not looked at every second")
		left := d.drain(t.Context(), h, "mine", now, entries, nothingOrphaned())
		require.NoError(t, left.err)
		require.Equal(t, []string{"a=live"}, namesOf(left.pending))
		require.True(t, left.wake.After(now))
		now = left.wake
	}
	assert.Equal(t, []string{"DELETE " + pathA, "GET " + pathA}, s.requests(), "one look and one deletion")
	left := d.drain(t.Context(), h, "mine", epoch.Add(grace), entries, nothingOrphaned())
	assert.Len(t, left.pending, 1)
	assert.Equal(t, []string{"GET " + pathA}, s.requests(), "and a look at its end")
	d.ledger.see(entryIdentity(entries[0]), sighting{gone: true, version: "8"})
	left = d.drain(t.Context(), h, "mine", epoch.Add(grace), entries, nothingOrphaned())
	assert.Empty(t, left.pending)
	assert.Empty(t, s.requests(), "its event is enough")
}

func TestARankThatDoesNotGoHoldsUpTheNext(t *testing.T) {
	held := ours(t, "live")
	held.SetFinalizers([]string{"example.com/hold"})
	service := workv1.AppliedManifestResourceMeta{Version: "v1", UID: "s", ResourceIdentifier: workv1.ResourceIdentifier{
		Resource: "namespaces", Name: "ns",
	}}
	const path = "/api/v1/namespaces/ns"
	s, client := newStub(t, map[string]*unstructured.Unstructured{pathA: held, path: ours(t, "s")})
	s.answer = func(method, asked string) (int, any) {
		if method == http.MethodDelete && asked == pathA {
			at := metav1.NewTime(epoch)
			held.SetDeletionTimestamp(&at)
			return http.StatusOK, held.Object
		}
		return 0, nil
	}
	entries := []workv1.AppliedManifestResourceMeta{service, entryOf("a", "live")}
	d, h := drainerOf(t, client, nil, entries...)
	left := d.drain(t.Context(), h, "mine", epoch, entries, nothingOrphaned())
	require.Len(t, left.held, 1)
	assert.Equal(t, []string{"example.com/hold"}, left.held[0].finalizers)
	assert.Equal(t, []string{"ns=s"}, namesOf(left.next))
	assert.ElementsMatch(t, []string{"a=live", "ns=s"}, namesOf(left.pending))
	assert.False(t, slices.Contains(s.requests(), "DELETE "+path))

	left = d.drain(t.Context(), h, "mine", epoch.Add(d.patience), entries, nothingOrphaned())
	assert.Equal(t, []string{"a=live"}, namesOf(left.pending), "after the patience the next goes")
	assert.Contains(t, s.requests(), "DELETE "+path)
}

func TestPrunable(t *testing.T) {
	manifests := read(t, configMap("a"), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"ns"}}`)
	grouped := func(name string) workv1.AppliedManifestResourceMeta {
		entry := entryOf(name, "1")
		entry.Group = "legacy.example.com"
		return entry
	}
	for name, c := range map[string]struct {
		result result
		ready  []string
		unsure []string
	}{
		"known objects hold up nothing":          {result{presence: presencePresent, uid: "1"}, []string{"a=1", "b=1", "c=1"}, nil},
		"an object that could not be read does":  {result{presence: presenceUnknown}, []string{"b=1", "c=1"}, []string{"a=1"}},
		"one that may not be read does not":      {result{presence: presenceUnknown, lasting: true}, []string{"a=1", "b=1", "c=1"}, nil},
		"an object that does not exist does not": {result{presence: presenceAbsent}, []string{"a=1", "b=1", "c=1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			results := []result{c.result, {presence: presencePresent, uid: "other"}}
			ready, unsure := prunable(manifests, results,
				[]workv1.AppliedManifestResourceMeta{grouped("a"), grouped("b"), grouped("c")})
			assert.Equal(t, c.ready, namesOf(ready))
			assert.Equal(t, c.unsure, namesOf(unsure))
		})
	}
	assert.Equal(t, map[types.UID]bool{"1": true}, appliedUIDs([]result{
		{presence: presencePresent, uid: "1"}, {presence: presenceUnknown, uid: "2"}, {presence: presenceAbsent},
	}))
}
