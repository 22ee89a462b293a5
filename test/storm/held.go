package storm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// CheckHeld looks at the objects that are going and do not go, because of the foreign finalizer: the record that owns
// such an object must be there and list it, for it outlives its objects. Works whose record a hand took away or emptied
// are excused.
func (m *Model) CheckHeld(w *world, excused map[string]bool) []string {
	var wrong []string
	for _, t := range m.things {
		live := w.objects[t.id]
		if live == nil || live.GetDeletionTimestamp() == nil || !slices.Contains(live.GetFinalizers(), finalizer) {
			continue
		}
		for _, ref := range live.GetOwnerReferences() {
			name := strings.TrimPrefix(ref.Name, w.hubHash+"-")
			record := w.applied[ref.Name]
			switch {
			case excused[name]:
			case record == nil || record.UID != ref.UID:
				wrong = append(wrong, t.String()+": it is still going, but the record of "+name+" was let go")
			case !lists(record, t):
				wrong = append(wrong, t.String()+": it is still going, but the record of "+name+" does not list it")
			}
		}
	}
	return wrong
}

// lists reports whether a record lists an object, or intends to make it.
func lists(record *workv1.AppliedManifestWork, t *thing) bool {
	return contains(record.Annotations[annotationIntent], intentOf(t)) ||
		slices.ContainsFunc(record.Status.AppliedResources, func(r workv1.AppliedManifestResourceMeta) bool {
			return r.ResourceIdentifier == identifier(t)
		})
}

// emptyRecord empties the list of an applied record and waits until the agent wrote it again. What left the work and
// is not gone yet stands nowhere but there, and nobody could find it any more: while there is such a thing, the list
// stays.
func (s *storm) emptyRecord(ctx context.Context, e *Edit) {
	var o *work
	for _, w := range s.model.works {
		if w.name == e.Work {
			o = w
		}
	}
	short, cancel := context.WithTimeout(ctx, handPatience)
	defer cancel()
	err := fleet.Wait(short, "the list to be that of the work", nil, func(ctx context.Context) error {
		live, err := s.record(ctx, e.Work)
		if err != nil || live == nil || len(live.Status.AppliedResources) == 0 {
			return fleet.NotYet("there is no list: %v", err)
		}
		for _, entry := range live.Status.AppliedResources {
			if !slices.ContainsFunc(o.things, func(t *thing) bool { return identifier(t) == entry.ResourceIdentifier }) {
				return fleet.NotYet("%s is on its way out", entry.Name)
			}
		}
		before := live.DeepCopy()
		live.Status.AppliedResources = nil
		return s.spoke.Status().Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		s.report.Missed++
		return
	}
	again, stop := context.WithTimeout(ctx, leavePatience)
	defer stop()
	err = fleet.Wait(again, "the list of "+e.Work+" to be written again", nil, func(ctx context.Context) error {
		live, err := s.record(ctx, e.Work)
		if err == nil && live != nil && len(live.Status.AppliedResources) == 0 {
			return fleet.NotYet("it is empty")
		}
		return err
	})
	if err != nil {
		fmt.Fprintf(s.Log, "             %v\n", err)
	}
}

// excuse notes that a hand took the record of a work away, or emptied it, until the next calm.
func (s *storm) excuse(e *Edit) {
	switch e.Action {
	case emptyRecord, vanishRecord, stripRecord, deleteRecord:
		s.excused[e.Work] = true
	default: // the others leave it alone
	}
}

// heldRight waits until what is held up is held right, before it is let go.
func (s *storm) heldRight(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	var wrong []string
	err := fleet.Wait(ctx, "what is held up to be listed", nil, func(ctx context.Context) error {
		w, err := s.look(ctx)
		if err != nil {
			return err
		}
		if wrong = s.model.CheckHeld(w, s.excused); len(wrong) > 0 {
			return fleet.NotYet("%d are not", len(wrong))
		}
		return nil
	})
	if err == nil {
		return nil
	}
	return wrong
}
