package work

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// TestTheEvictorLeavesAloneWhatItsWorkLetsGo has the cache of the cluster behind that of the hub.
func TestTheEvictorLeavesAloneWhatItsWorkLetsGo(t *testing.T) {
	applied := func(uid string) *workv1.AppliedManifestWork {
		return &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID(uid)}}
	}
	for sentence, test := range map[string]struct {
		before func(r *Reconciler, ofWork *facts)
		cached string
		there  bool
	}{
		"nobody lets it go": {before: func(*Reconciler, *facts) {}, cached: "u", there: true},
		"the request is under way, or succeeded": {
			before: func(r *Reconciler, f *facts) { r.announceGone(f, true) }, cached: "u",
		},
		"the request failed": {
			before: func(r *Reconciler, f *facts) { r.announceGone(f, true); r.announceGone(f, false) }, cached: "u", there: true,
		},
		"another one has its name": {
			before: func(r *Reconciler, f *facts) { r.announceGone(f, true) }, cached: "v", there: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := &evictor{Reconciler: &Reconciler{parts: parts{notes: newNotes()}, Clock: clock.RealClock{}}}
			test.before(e.Reconciler, &facts{owner: watch.Owner{Name: "w"}, applied: applied("u")})
			f := &facts{now: time.Now(), owner: watch.Owner{Applied: true, Name: "a"}, applied: applied(test.cached)}
			e.checkEvictionLag(f)
			assert.Equal(t, test.there, f.applied != nil)
			assert.False(t, f.stale)
		})
	}
	r := &Reconciler{parts: parts{notes: newNotes()}, Clock: clock.RealClock{}}
	own := &facts{owner: watch.Owner{Applied: true, Name: "a"}, applied: applied("u")}
	r.notes.change(own.owner, func(n *note) { n.blocked = 1 })
	r.announceGone(own, true)
	r.announceGone(own, false)
	assert.Equal(t, 1, r.notes.of(own.owner).blocked, "the evictor keeps its own notes")
}

// A record belongs to the work that its name says: until the work reconciles it, its spec may say anything.
//
// Shows: work/eviction-needs-hub
func TestARecordWhoseSpecWasEditedHasItsWork(t *testing.T) {
	lost := lose(t, epoch, "", "w")
	record := lost.applied("w")
	require.NoError(t, lost.hub.Create(t.Context(), &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: lost.Cluster, Name: "w"},
	}))
	for sentence, c := range map[string]struct {
		name, work string
		managed    bool
		says       string
	}{
		"as it was":             {record.Name, "w", true, "w"},
		"it names another work": {record.Name, "other", true, "w"},
		"it names no work":      {record.Name, "", true, "w"},
		"its work is gone":      {lost.inventory.Name("gone"), "w", false, "gone"},
		"it is of another hub":  {"0123-w", "w", false, "w"},
		"its name has no hub":   {"w", "w", false, "w"},
		"its name has no work":  {lost.inventory.HubHash + "-", "w", false, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			edited := record.DeepCopy()
			edited.Name, edited.Spec.ManifestWorkName = c.name, c.work
			for _, live := range []bool{false, true} {
				managed, err := lost.hasWork(t.Context(), edited, live)
				require.NoError(t, err)
				assert.Equal(t, c.managed, managed)
			}
			assert.Equal(t, c.says, lost.lostWork(edited).Name)
		})
	}
}

// TestOnlyAWorkThatDoesNotExistIsGone has the answers that may look like one about a work.
//
// Shows: work/eviction-needs-hub
func TestOnlyAWorkThatDoesNotExistIsGone(t *testing.T) {
	works := schema.GroupResource{Group: workv1.GroupName, Resource: "manifestworks"}
	page := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", works, "w", "404 page not found", 0, true)
	for sentence, c := range map[string]struct {
		answer error
		exists bool
		known  bool
	}{
		"it exists":                         {nil, true, true},
		"it does not exist":                 {apierrors.NewNotFound(works, "w"), false, true},
		"the definition of works is gone":   {page, false, false},
		"a proxy has no such page":          {fmt.Errorf("reading: %w", page), false, false},
		"the agent may not read works":      {apierrors.NewForbidden(works, "w", errors.New("no")), false, false},
		"the hub does not know works":       {&meta.NoKindMatchError{}, false, false},
		"the hub does not answer":           {context.DeadlineExceeded, false, false},
		"the credential is not valid there": {apierrors.NewUnauthorized("no"), false, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			hub := reader{c.answer}
			exists, err := (&Reconciler{Cluster: "c"}).onHub(t.Context(), hub, "w", &workv1.ManifestWork{})
			assert.Equal(t, c.exists, exists)
			assert.Equal(t, c.known, err == nil, "what is unknown deletes nothing")
			applied, err := inventory.Read(t.Context(), hub, "a")
			assert.Equal(t, c.exists, applied != nil)
			assert.Equal(t, c.known, err == nil, "nor does it release a work")
		})
	}
}

// reader answers each request to read an object in the same way.
type reader struct{ answer error }

func (r reader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return r.answer
}

func (r reader) List(context.Context, client.ObjectList, ...client.ListOption) error { return r.answer }
