package storm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// sameObjects are objects with their UIDs: all that existed at the last calm, and those that a work left while another
// one that owns them stayed. Until an edit does something else to them they stay the same objects.
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
		if s.ownedByVanishing(t) {
			continue
		}
		live, err := s.get(ctx, t)
		if err == nil && live != nil && live.GetDeletionTimestamp() == nil && len(live.GetOwnerReferences()) > 1 {
			s.same[t] = live.GetUID()
		}
	}
}

// ownedByVanishing reports whether a hand took away the records of all works that own an object: what they own alone
// goes with them, and is made again.
func (s *storm) ownedByVanishing(t *thing) bool {
	return !slices.ContainsFunc(s.model.holders(t), func(w *work) bool { return w.owns(t) && !s.excused[w.name] })
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

// ends tells who deleted and made an object of a violation, by the audit log of the cluster.
func (s *storm) ends(what string) string {
	var told []string
	for t := range s.same {
		if !strings.HasPrefix(what, t.String()+":") {
			continue
		}
		log, err := os.ReadFile(s.spokeAudit.path)
		if err != nil {
			return fmt.Sprintf("      reading the audit log: %v", err)
		}
		for text := range bytes.Lines(log) {
			var one line
			if json.Unmarshal(text, &one) != nil || one.Object == nil || one.Object.Name != t.name ||
				one.Object.Namespace != t.namespace || one.Verb == "get" || one.Verb == "watch" {
				continue
			}
			told = append(told, fmt.Sprintf("      %s %s %s by %s", one.At, one.Verb, one.URI, one.User.Username))
		}
	}
	return strings.Join(told[max(0, len(told)-toldRequests):], "\n")
}

// toldRequests is how many requests of an object a violation quotes.
const toldRequests = 12
