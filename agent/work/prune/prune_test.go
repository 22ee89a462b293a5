package prune

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/watch"
)

const (
	pathA      = "/api/v1/namespaces/ns/configmaps/a"
	pathWidget = "/apis/example.com/v1/namespaces/ns/widgets/w"
	pathGone   = "/apis/example.com/v1alpha1/namespaces/ns/widgets/w"
	pathCRD    = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
)

// object decodes YAML.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
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

// ours is a live object that the AppliedManifestWork with the UID mine owns.
func ours(t *testing.T, uid types.UID) *unstructured.Unstructured {
	t.Helper()
	live := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns, resourceVersion: "7"}}`)
	live.SetUID(uid)
	live.SetOwnerReferences([]metav1.OwnerReference{inventory.OwnerReference("applied", "mine")})
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

// prunerOf returns a pruner over a stub, with an owner that claimed the entries.
func prunerOf(t *testing.T, client spoke.Client, served []schema.GroupVersionKind,
	entries ...workv1.AppliedManifestResourceMeta,
) (*Pruner, watch.Owner) {
	t.Helper()
	versions := make([]schema.GroupVersion, len(served))
	for i := range served {
		versions[i] = served[i].GroupVersion()
	}
	kinds := meta.NewDefaultRESTMapper(versions)
	for _, kind := range served {
		kinds.Add(kind, meta.RESTScopeNamespace)
	}
	d := &Pruner{
		Client: client, Store: watch.NewStore(func(watch.Owner) {}, func() {}), Mapper: kinds, Count: func(Result) {},
		Timeout: time.Minute,
	}
	h, objects := watch.Owner{Name: "w"}, map[manifest.ID]watch.Key{}
	for _, entry := range entries {
		objects[manifest.IDOf(entry)] = watch.Key{Resource: manifest.ResourceOf(entry), Namespace: entry.Namespace}
	}
	d.Store.Claim(h, objects, nil)
	return d, h
}

// exempt are the objects that are not deleted.
type exempt struct {
	orphaned func(manifest.ID) bool
	applied  map[types.UID]bool
}

// nothingOrphaned deletes everything but the objects with the UIDs.
func nothingOrphaned(applied ...types.UID) exempt {
	not := exempt{orphaned: func(manifest.ID) bool { return false }, applied: map[types.UID]bool{}}
	for _, uid := range applied {
		not.applied[uid] = true
	}
	return not
}

// request is a request of the owner h with what is exempt.
func request(h watch.Owner, now time.Time, not exempt) Request {
	return Request{Owner: h, UID: "mine", Now: now, Orphaned: not.orphaned, Applied: not.applied}
}

// begin starts a pass.
func (p *Pruner) begin(r Request) *pass {
	return &pass{Pruner: p, Request: r, versions: map[schema.GroupVersionResource]func() (string, error){}}
}

func TestPruningOneObject(t *testing.T) {
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
			not:   exempt{orphaned: func(manifest.ID) bool { return true }},
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
			d, h := prunerOf(t, client, c.served, c.entry)
			if c.not.applied == nil {
				c.not.applied = map[types.UID]bool{}
			}
			deletion, err := d.begin(request(h, epoch, c.not)).prune(t.Context(), c.entry)
			if c.fails == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fails)
			}
			assert.Equal(t, c.pending, deletion != nil || err != nil)
			assert.Equal(t, c.asked, s.requests())
		})
	}
}

// TestAnObjectThatAnotherWorkTakesOverIsNotDeleted lets a user write the object between the look and the deletion.
//
// Shows: work/other-owners, work/shared-object
func TestAnObjectThatAnotherWorkTakesOverIsNotDeleted(t *testing.T) {
	for sentence, c := range map[string]struct {
		write func(live *unstructured.Unstructured, round int)
		stays bool
		fails string
	}{
		"another work takes it over": {write: func(live *unstructured.Unstructured, _ int) {
			live.SetOwnerReferences([]metav1.OwnerReference{
				inventory.OwnerReference("applied", "mine"), inventory.OwnerReference("other", "theirs"),
			})
		}, stays: true},
		"the other work lets our reference go, too": {write: func(live *unstructured.Unstructured, _ int) {
			live.SetOwnerReferences([]metav1.OwnerReference{inventory.OwnerReference("other", "theirs")})
		}, stays: true},
		"it only changes": {write: func(live *unstructured.Unstructured, round int) {
			if round == 1 {
				live.SetLabels(map[string]string{"a": "b"})
			}
		}},
		"it changes all the time": {write: func(live *unstructured.Unstructured, round int) {
			live.SetLabels(map[string]string{"round": strconv.Itoa(round)})
		}, stays: true, fails: "refused: Conflict"},
	} {
		t.Run(sentence, func(t *testing.T) {
			live := ours(t, "live")
			objects := map[string]*unstructured.Unstructured{pathA: live}
			s, client := newStub(t, objects)
			round := 0
			s.answer = func(method, _ string) (int, any) {
				if before := live.DeepCopy(); method == http.MethodDelete {
					round++
					c.write(live, round)
					if !assert.ObjectsAreEqual(before, live) {
						live.SetResourceVersion(strconv.Itoa(100 + round))
					}
				}
				return 0, nil
			}
			d, h := prunerOf(t, client, nil, entryOf("a", "live"))
			deletion, err := d.begin(request(h, epoch, nothingOrphaned())).prune(t.Context(), entryOf("a", "live"))
			assert.Nil(t, deletion)
			assert.Equal(t, c.stays, objects[pathA] != nil)
			if c.fails == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.fails, "it stays listed and is tried again")
			assert.Equal(t, conflictRounds, round)
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
	d, h := prunerOf(t, client, nil, entries...)
	s.answer = func(_, path string) (int, any) {
		if path == pathCRD {
			return 0, nil
		}
		return http.StatusNotFound, "404 page not found"
	}
	left := d.Prune(t.Context(), request(h, epoch, nothingOrphaned()), entries)
	require.NoError(t, left.Err)
	assert.Empty(t, left.Pending)
	assert.Len(t, s.requests(), len(entries)+1)
}

func TestAnObjectThatIsKnownIsDeletedWithOneRequest(t *testing.T) {
	for name, c := range map[string]struct {
		applied []types.UID
		asked   []string
	}{
		"deleted":                       {nil, []string{"DELETE " + pathA}},
		"applied under another group":   {[]types.UID{"live"}, []string{"GET " + pathA}},
		"while another one was applied": {[]types.UID{"other"}, []string{"DELETE " + pathA}},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newStub(t, map[string]*unstructured.Unstructured{pathA: ours(t, "live")})
			entry := entryOf("a", "") // an intent, whose UID the status has not taken over yet
			d, h := prunerOf(t, client, nil, entry)
			d.Store.Record(h, manifest.IDOf(entry), watch.State{Object: watch.Object{Exists: true, UID: "live", Version: "7", Sole: true}})
			deletion, err := d.begin(request(h, epoch, nothingOrphaned(c.applied...))).prune(t.Context(), entry)
			require.NoError(t, err)
			assert.Nil(t, deletion)
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
	d, h := prunerOf(t, client, nil, entries...)
	passes := 0
	for now := epoch; now.Before(epoch.Add(grace)); passes++ {
		require.Less(t, passes, 10, "it is not looked at every second")
		left := d.Prune(t.Context(), request(h, now, nothingOrphaned()), entries)
		require.NoError(t, left.Err)
		require.Equal(t, []string{"a=live"}, namesOf(left.Pending))
		require.True(t, left.Wake.After(now))
		now = left.Wake
	}
	assert.Equal(t, []string{"DELETE " + pathA, "GET " + pathA}, s.requests(), "one look and one deletion")
	left := d.Prune(t.Context(), request(h, epoch.Add(grace), nothingOrphaned()), entries)
	assert.Len(t, left.Pending, 1)
	assert.Equal(t, []string{"GET " + pathA}, s.requests(), "and a look at its end")
	d.Store.Observe(manifest.IDOf(entries[0]), watch.Event{Deleted: true, Version: "8"})
	left = d.Prune(t.Context(), request(h, epoch.Add(grace), nothingOrphaned()), entries)
	assert.Empty(t, left.Pending)
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
	d, h := prunerOf(t, client, nil, entries...)
	left := d.Prune(t.Context(), request(h, epoch, nothingOrphaned()), entries)
	require.Len(t, left.Blocked, 1)
	assert.Equal(t, []string{"example.com/hold"}, left.Blocked[0].Finalizers)
	assert.Equal(t, []string{"ns=s"}, namesOf(left.Next))
	assert.ElementsMatch(t, []string{"a=live", "ns=s"}, namesOf(left.Pending))
	assert.False(t, slices.Contains(s.requests(), "DELETE "+path))

	left = d.Prune(t.Context(), request(h, epoch.Add(d.Timeout), nothingOrphaned()), entries)
	assert.Equal(t, []string{"a=live"}, namesOf(left.Pending), "after the patience the next goes")
	assert.Contains(t, s.requests(), "DELETE "+path)
}

// TestPermissionsGoWhenWhatWentBeforeIsRecorded shows why: the role gave the right to read the widget.
//
// Shows: work/permissions-last
func TestPermissionsGoWhenWhatWentBeforeIsRecorded(t *testing.T) {
	const pathRole = "/apis/rbac.authorization.k8s.io/v1/clusterroles/r"
	role := workv1.AppliedManifestResourceMeta{Version: "v1", UID: "role", ResourceIdentifier: workv1.ResourceIdentifier{
		Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "r",
	}}
	s, client := newStub(t, map[string]*unstructured.Unstructured{pathRole: ours(t, "role")})
	intended := widgetEntry()
	intended.Version, intended.UID = "v1", ""
	entries := []workv1.AppliedManifestResourceMeta{role, intended}
	d, h := prunerOf(t, client, nil, entries...)
	left := d.Prune(t.Context(), request(h, epoch, nothingOrphaned()), entries)
	assert.True(t, left.Unrecorded)
	assert.Equal(t, []string{"r=role"}, namesOf(left.Pending))
	assert.Equal(t, epoch.Add(firstCheck), left.Wake)
	assert.Equal(t, []string{"GET " + pathWidget}, s.requests())

	left = d.Prune(t.Context(), request(h, epoch, nothingOrphaned()), left.Pending)
	assert.False(t, left.Unrecorded)
	assert.Contains(t, s.requests(), "DELETE "+pathRole)
}

// TestTheClockOfTheAPIServerDoesNotCount deletes an object that does not go on a cluster whose clock is off.
//
// Shows: work/deletion-clock
func TestTheClockOfTheAPIServerDoesNotCount(t *testing.T) {
	namespace := workv1.AppliedManifestResourceMeta{Version: "v1", UID: "s", ResourceIdentifier: workv1.ResourceIdentifier{
		Resource: "namespaces", Name: "ns",
	}}
	for sentence, off := range map[string]time.Duration{
		"behind by five minutes": -5 * time.Minute, "ahead by an hour": time.Hour, "right": 0,
	} {
		t.Run(sentence, func(t *testing.T) {
			held := ours(t, "live")
			held.SetFinalizers([]string{"example.com/hold"})
			s, client := newStub(t, map[string]*unstructured.Unstructured{pathA: held, "/api/v1/namespaces/ns": ours(t, "s")})
			s.answer = func(method, asked string) (int, any) {
				if method == http.MethodDelete && asked == pathA {
					at := metav1.NewTime(epoch.Add(off))
					held.SetDeletionTimestamp(&at)
					return http.StatusOK, held.Object
				}
				return 0, nil
			}
			entries := []workv1.AppliedManifestResourceMeta{namespace, entryOf("a", "live")}
			d, h := prunerOf(t, client, nil, entries...)
			prune := func(after time.Duration) Remaining {
				return d.Prune(t.Context(), request(h, epoch.Add(after), nothingOrphaned()), entries)
			}
			for _, after := range []time.Duration{0, 10 * time.Second, d.Timeout - time.Second} {
				left := prune(after)
				assert.Equal(t, []string{"ns=s"}, namesOf(left.Next), after)
				assert.Equal(t, epoch, left.Blocked[0].Since, after)
			}
			left := prune(d.Timeout)
			assert.Empty(t, left.Next, "after its time the next rank goes")
			assert.Len(t, left.Overdue(epoch.Add(d.Timeout)), 1)

			d, h = prunerOf(t, client, nil, entries...)
			again := prune(time.Minute)
			require.Len(t, again.Blocked, 1)
			assert.False(t, again.Blocked[0].Since.After(epoch.Add(time.Minute)), "after a restart it does not begin later than now")
		})
	}
}

func TestAPanicOverOneDeletionLeavesItsSiblingsAlone(t *testing.T) {
	s, client := newStub(t, map[string]*unstructured.Unstructured{})
	entries := []workv1.AppliedManifestResourceMeta{entryOf("a", "1"), entryOf("bad", "2")}
	d, h := prunerOf(t, client, nil, entries...)
	left := d.Prune(t.Context(), request(h, epoch, nothingOrphaned()), entries)
	require.NoError(t, left.Err)
	assert.Empty(t, left.Pending)
	assert.Len(t, s.requests(), 2)

	d.Client = faulty(t)
	left = d.Prune(t.Context(), request(h, epoch, nothingOrphaned()), entries)
	require.ErrorContains(t, left.Err, "the defect")
	assert.Equal(t, []string{"bad=2"}, namesOf(left.Pending), "nothing is forgotten")
	require.Len(t, left.Blocked, 1)
	assert.Contains(t, left.Blocked[0].Cause, "the agent failed, which is a defect of it")
}

func TestErrorsAreToldPlainly(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no"))
	assert.Equal(t, refusal.Error(), ErrorText(errors.Join(refusal)))
	assert.Equal(t, "the API server did not answer", ErrorText(errors.New("read tcp 10.0.0.1:53112: reset")))
}

func TestDeletionOrder(t *testing.T) {
	entry := func(group, resource, name string) workv1.AppliedManifestResourceMeta {
		return workv1.AppliedManifestResourceMeta{ResourceIdentifier: workv1.ResourceIdentifier{
			Group: group, Resource: resource, Name: name,
		}}
	}
	list := []workv1.AppliedManifestResourceMeta{
		entry("", "configmaps", "b"), entry("", "configmaps", "a"), entry("", "namespaces", "n"),
		entry("apiextensions.k8s.io", "customresourcedefinitions", "widgets.example.com"),
		entry("apps", "deployments", "operator"), entry("example.com", "widgets", "w"),
		entry("rbac.authorization.k8s.io", "roles", "r"),
		// An aggregated API goes after its objects, which cannot be read without it.
		entry("apiregistration.k8s.io", "apiservices", "v1.example.com"),
	}
	order := deletionOrder(list)
	var said []string
	for len(order) > 0 {
		end := rankEnd(order)
		text := ""
		for _, e := range order[:end] {
			text += e.Resource + "/" + e.Name + " "
		}
		said, order = append(said, text), order[end:]
	}
	assert.Equal(t, []string{
		"widgets/w ", "apiservices/v1.example.com ", "deployments/operator ", "configmaps/a configmaps/b ", "roles/r ",
		"namespaces/n customresourcedefinitions/widgets.example.com ",
	}, said)
	assert.Equal(t, "b", list[0].Name, "the list itself stays as it was")
	assert.Zero(t, rankEnd(nil))
}

func TestHowLongARankHoldsUpTheNext(t *testing.T) {
	for name, c := range map[string]struct {
		blocked []Blocked
		want    time.Time
	}{
		"not at all when it is gone":         {nil, time.Time{}},
		"for the patience":                   {[]Blocked{blockedThing("a", epoch)}, epoch.Add(time.Minute)},
		"from the last that was told to go":  {[]Blocked{blockedThing("a", epoch.Add(time.Hour)), blockedThing("b", epoch)}, epoch.Add(61 * time.Minute)},
		"not at all when nobody knows since": {[]Blocked{blockedThing("a", time.Time{})}, time.Time{}.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			left := Remaining{Blocked: c.blocked}
			assert.Equal(t, c.want, left.blocksUntil(time.Minute))
		})
	}
}

func TestOverdueObjects(t *testing.T) {
	left := Remaining{Blocked: []Blocked{blockedThing("old", epoch), blockedThing("new", epoch.Add(time.Second))}}
	assert.Empty(t, left.Overdue(epoch))
	assert.Len(t, left.Overdue(epoch.Add(overdueAfter)), 1)
	assert.Len(t, left.Overdue(epoch.Add(time.Hour)), 2)
	assert.Len(t, left.Blocked, 2, "what is held stays so")
}

// Earlier versions of the agent recorded that they were about to create an object of any name.
func TestAnIntentWithANameThatNoClientAsksForGoes(t *testing.T) {
	for sentence, name := range map[string]string{
		"a name that never existed": "b", "a name that has no address": "a%b",
	} {
		t.Run(sentence, func(t *testing.T) {
			_, client := newStub(t, nil)
			entry := entryOf(name, "")
			d, h := prunerOf(t, client, nil, entry)
			left := d.Prune(t.Context(), request(h, epoch.Add(24*time.Hour), nothingOrphaned()),
				[]workv1.AppliedManifestResourceMeta{entry})
			assert.Empty(t, left.Pending, "%v", left.Err)
		})
	}
}
