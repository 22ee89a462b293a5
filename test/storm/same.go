package storm

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// sameObjects are objects with their UIDs: all that existed at the last calm, and those that a work left while another one
// that owns them stayed. Until an edit does something else to them they stay the same objects.
type sameObjects map[*thing]types.UID

// note notes the objects that an edit takes from a work while another owner stays, and forgets those to which it does
// anything else that may make them again.
func (s *storm) note(ctx context.Context, e *Edit) {
	for t := range s.same {
		touched := slices.Contains(e.things, t) || slices.ContainsFunc(e.things, func(p *thing) bool {
			return slices.Contains(s.model.children(p), t)
		})
		harmless := e.Action == setValue || e.Action == addValue || e.Action == dropLabel
		if touched && !harmless {
			delete(s.same, t)
		}
	}
	for _, t := range e.stays {
		live, err := s.get(ctx, t)
		if err == nil && live != nil && live.GetDeletionTimestamp() == nil && len(live.GetOwnerReferences()) > 1 {
			s.same[t] = live.GetUID()
		}
	}
}

// noteAll notes all objects that exist.
func (s *storm) noteAll(ctx context.Context) error {
	w, err := s.look(ctx)
	if err != nil {
		return err
	}
	for _, t := range s.model.things {
		if live := w.objects[t.id]; live != nil && live.GetDeletionTimestamp() == nil {
			s.same[t] = live.GetUID()
		}
	}
	return nil
}

// checkSame says which of the objects were made again.
func (s *storm) checkSame(w *world) []string {
	var wrong []string
	for t, uid := range s.same {
		if live := w.objects[t.id]; live != nil && live.GetUID() != uid {
			wrong = append(wrong, t.String()+": it was made again, and no edit asked for that")
		}
	}
	slices.Sort(wrong)
	return wrong
}
