package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spokelet/spokelet/internal/message"
)

// Gap names a part that an answer lacks, because the user may not read it, the hub does not have it, or it cannot be
// decoded.
type Gap struct {
	// What is the resource, with its namespace where only that was asked.
	What string `json:"what"`
	// Objects are the objects of the resource that cannot be decoded, as namespace/name; none where all are lacking.
	Objects []string `json:"objects,omitempty"`
	// Missing reports that the hub does not serve the resource.
	Missing bool `json:"missing,omitempty"`
	// Rule is the rule of RBAC that is lacking; empty where that is not the reason.
	Rule string `json:"rule,omitempty"`
	// Why is the answer of the API server.
	Why string `json:"why"`
	// Cluster reports that it is about a managed cluster that was looked into, Silent that this does not answer, and
	// Refused that it answers, and does not accept the credential of the user.
	Cluster bool `json:"cluster,omitempty"`
	Silent  bool `json:"silent,omitempty"`
	Refused bool `json:"refused,omitempty"`
}

// maxNamed is how many objects of a gap are named in a text.
const maxNamed = 3

// Undecoded says which objects of the gap cannot be decoded; empty for a gap of another kind.
func (g Gap) Undecoded() string {
	switch len(g.Objects) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 object of %s cannot be decoded: %s", g.What, g.Objects[0])
	}
	named := message.List(g.Objects, maxNamed, ", ")
	return fmt.Sprintf("%d objects of %s cannot be decoded: %s", len(g.Objects), g.What, named)
}

// ErrUndecodable is in the error of Changes for one object that cannot be decoded. Changes goes on after it.
var ErrUndecodable = errors.New("an object cannot be decoded")

// decode decodes the objects of a page. One that cannot be decoded is a gap, and hides no other: who writes its status
// may have put a time there that Go does not read.
func decode[T any](r *Reader, q Query, page []byte) ([]T, error) {
	var whole struct {
		Items []T `json:"items"`
	}
	if json.Unmarshal(page, &whole) == nil {
		return whole.Items, nil
	}
	var parts struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(page, &parts); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", q.Resource, err)
	}
	all := make([]T, 0, len(parts.Items))
	for _, part := range parts.Items {
		var one T
		if err := json.Unmarshal(part, &one); err != nil {
			r.undecoded(q, part, err)
			continue
		}
		all = append(all, one)
	}
	return all, nil
}

// undecoded notes that an object cannot be decoded, and reports whether that is new.
func (r *Reader) undecoded(q Query, raw json.RawMessage, why error) bool {
	name, what := objectOf(raw), q.Resource.String()
	i := slices.IndexFunc(r.Gaps, func(g Gap) bool { return g.What == what && len(g.Objects) > 0 })
	if i < 0 {
		r.Gaps = append(r.Gaps, Gap{What: what, Objects: []string{name}, Why: why.Error(), Cluster: r.Cluster})
		return true
	}
	at, known := slices.BinarySearch(r.Gaps[i].Objects, name)
	if !known {
		r.Gaps[i].Objects = slices.Insert(r.Gaps[i].Objects, at, name)
	}
	return !known
}

// objectOf names an object that cannot be decoded, as namespace/name.
func objectOf(raw json.RawMessage) string {
	var o struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if json.Unmarshal(raw, &o) != nil || o.Metadata.Name == "" {
		return "one without a name"
	}
	return KeyOf(o.Metadata.Namespace, o.Metadata.Name)
}

// KeyOf names an object as a Gap does: namespace/name, or the name of one without a namespace.
func KeyOf(namespace, name string) string { return strings.TrimPrefix(namespace+"/"+name, "/") }

// Again returns a Reader of the same source that knows which objects cannot be decoded, and has no other gaps.
func (r *Reader) Again() *Reader {
	again := &Reader{Source: r.Source, Cluster: r.Cluster}
	for _, gap := range r.Gaps {
		if len(gap.Objects) > 0 {
			gap.Objects = slices.Clone(gap.Objects)
			again.Gaps = append(again.Gaps, gap)
		}
	}
	return again
}

// Lacks reports whether a resource could not be read.
func (r *Reader) Lacks(plural string) bool {
	return slices.ContainsFunc(r.Gaps, func(gap Gap) bool { return len(gap.Objects) == 0 && gap.isOf(plural) })
}

// LacksObject reports whether an object could not be read: its resource, or itself alone. key is that of KeyOf.
func (r *Reader) LacksObject(plural, key string) bool {
	return r.Lacks(plural) || slices.ContainsFunc(r.Gaps, func(gap Gap) bool {
		_, has := slices.BinarySearch(gap.Objects, key)
		return has && gap.isOf(plural)
	})
}

// LacksPart reports whether a resource, or an object of it, could not be read.
func (r *Reader) LacksPart(plural string) bool {
	return slices.ContainsFunc(r.Gaps, func(gap Gap) bool { return gap.isOf(plural) })
}

// isOf reports whether the gap is one of a resource, by its plural or by its name with the group.
func (g Gap) isOf(resource string) bool {
	rest, is := strings.CutPrefix(g.What, resource)
	return is && (rest == "" || rest[0] == '.' || rest[0] == ' ')
}
