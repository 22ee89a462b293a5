package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// An add-on that people install waits, too, and its condition names the content. The status counts placements alone.
func TestTheContentOfAnAddOnThatAPersonInstalledIsApproved(t *testing.T) {
	h := ruled(addOnPolicy(map[string]any{"approval": "PerRollout"}, map[string]any{"waiting": 0}))
	got := plays(t, h, "rollout", "approve", "addon", "logs", "--content", "aaaaaaaaaaaa")
	assert.Equal(t, 0, got.status, got.errs)
	assert.Len(t, h.written, 1)
}

// Two people approve at the same time, and the first approval makes the list: the second one must not replace it. The
// API server takes the patch of the second one as it is, unless it tests what was read.
func TestAnApprovalReplacesNoOther(t *testing.T) {
	for sentence, tc := range map[string]struct {
		spec map[string]any
		args []string
	}{
		"the first approval":                 {map[string]any{"approval": "PerRollout"}, []string{"approve", "addon", "logs"}},
		"a pause of a policy without a spec": {map[string]any{}, []string{"pause", "addon", "logs"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			policy := addOnPolicy(tc.spec, map[string]any{"contents": []any{content("aaaaaaaaaaaa", false)}})
			part(policy, "metadata")["generation"] = 1
			h := ruled(policy)
			got := plays(t, h, append([]string{"rollout"}, tc.args...)...)
			assert.Equal(t, 0, got.status, got.errs)
			if assert.Len(t, h.written, 1) {
				assert.Regexp(t, `"op":"test","path":"/metadata/(generation|resourceVersion)"`, h.written[0])
			}
		})
	}
}
