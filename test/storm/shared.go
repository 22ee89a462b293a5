package storm

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// shared are the objects that a work left while another one that owns them stayed, with their UIDs: until somebody
// does something else to them they stay the same objects.
type shared map[*thing]types.UID

// noteShared notes the objects that an edit takes from a work while another owner stays, and forgets those to which it
// does anything else that may make them again.
func (s *storm) noteShared(ctx context.Context, e *Edit) {
	for t := range s.shared {
		touched := slices.Contains(e.things, t) || slices.ContainsFunc(e.things, func(p *thing) bool {
			return slices.Contains(s.model.children(p), t)
		})
		harmless := e.Action == setValue || e.Action == addValue || e.Action == dropLabel
		if touched && !harmless {
			delete(s.shared, t)
		}
	}
	for _, t := range e.stays {
		live, err := s.get(ctx, t)
		if err == nil && live != nil && live.GetDeletionTimestamp() == nil && len(live.GetOwnerReferences()) > 1 {
			s.shared[t] = live.GetUID()
		}
	}
}

// checkShared says which of the objects were made again.
func (s *storm) checkShared(w *world) []string {
	var wrong []string
	for t, uid := range s.shared {
		if live := w.objects[t.id]; live != nil && live.GetUID() != uid {
			wrong = append(wrong, t.String()+": it was made again when one of its two owners left it")
		}
	}
	slices.Sort(wrong)
	return wrong
}
