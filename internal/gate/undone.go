package gate

import (
	"slices"

	"github.com/spokelet/spokelet/internal/policies"
)

// Remembers reports whether the policy says of a content that it is undone, for all clusters or for those that failed
// with it, and nobody said that it may be tried again.
func (g Gate) Remembers(content string) bool {
	if g.policy == nil || slices.Contains(g.policy.Spec.Undo, content) {
		return g.policy != nil
	}
	is := func(u policies.Undone) bool { return u.Content == content }
	return !g.Retried(content) && slices.ContainsFunc(g.policy.Status.Undone, is)
}
