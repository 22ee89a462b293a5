package prune

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/spoke"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// TestTheEventOfADeletionThatComesWithTheAnswerCounts: a controller takes its finalizer away at once, so that
// the event that the object is gone comes before the answer to its deletion was read.
func TestTheEventOfADeletionThatComesWithTheAnswerCounts(t *testing.T) {
	for sentence, room := range map[string]*spoke.Room{"no room (control)": nil, "a room": spoke.NewRoom()} {
		t.Run(sentence, func(t *testing.T) {
			held := ours(t, "live")
			held.SetFinalizers([]string{"kubernetes.io/pvc-protection"})
			s, client := newStub(t, map[string]*unstructured.Unstructured{pathA: held})
			entry := entryOf("a", "live")
			d, h := prunerOf(t, client, nil, entry)
			d.Store = watch.NewStore(func(watch.Owner) {}, func() {})
			d.Store.Claim(h, map[manifest.ID]watch.Key{manifest.IDOf(entry): {Resource: manifest.ResourceOf(entry), Namespace: "ns"}}, nil)
			d.Store.Record(h, manifest.IDOf(entry), watch.State{Object: watch.Object{Exists: true, UID: "live", Version: "7", Sole: true}})
			s.answer = func(method, _ string) (int, any) {
				if method != http.MethodDelete {
					return 0, nil
				}
				at := metav1.NewTime(epoch)
				held.SetDeletionTimestamp(&at)
				answer := held.DeepCopy()
				delete(s.objects, pathA)
				d.Store.Observe(manifest.IDOf(entry), watch.Event{Deleted: true, Version: "9"})
				return http.StatusOK, answer.Object
			}
			r := request(h, epoch, nothingOrphaned())
			r.Room = room
			left := d.Prune(t.Context(), r, []workv1.AppliedManifestResourceMeta{entry})
			require.NoError(t, left.Err)
			_, drift := d.Store.Look(h, manifest.IDOf(entry))
			assert.Equal(t, watch.Deleted, drift, "the event says that it is gone")
			s.requests()
			left = d.Prune(t.Context(), r, []workv1.AppliedManifestResourceMeta{entry})
			assert.Empty(t, left.Pending, "the pass that the event woke finds it gone")
			assert.Empty(t, s.requests())
		})
	}
}
