package gate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// Shows: policies/policy-wave-verdict
func TestWhatAnApprovalPerWaveAdmits(t *testing.T) {
	canary := gate.Wave{Key: "ns/shops/canary", Title: "decision group 0 (canary) of placement ns/shops"}
	rest := gate.Wave{Key: "ns/shops/rest", Title: "all other clusters of placement ns/shops"}
	content, other := gate.ContentName("logs", "logs@1"), gate.ContentName("logs", "logs@2")
	ruled := func(approval policies.Approval, approved ...string) gate.Gate {
		return gate.New("logs", policy(policies.AddOnPolicySpec{Approval: approval, Approved: approved}), nil)
	}
	perWave := func(approved ...string) gate.Gate { return ruled(policies.ApprovalPerWave, approved...) }
	of := func(wave gate.Wave, content string) string { return perWave().In(wave).NameOf(content) }
	for sentence, tc := range map[string]struct {
		gate gate.Gate
		wave gate.Wave
		held string
	}{
		"nothing is approved": {
			perWave(), canary, "does not approve content " + of(canary, content) + ", which is for " + canary.Title,
		},
		"the wave is approved":                            {perWave(of(canary, content)), canary, ""},
		"another wave is approved":                        {perWave(of(canary, content)), rest, of(rest, content)},
		"the wave of other content is approved":           {perWave(of(canary, other)), canary, of(canary, content)},
		"the content is approved":                         {perWave(content), rest, ""},
		"other content is approved":                       {perWave(other), rest, of(rest, content)},
		"no rollout decides, and nothing is approved":     {perWave(), gate.Wave{}, "does not approve content " + content},
		"no rollout decides, and a wave is approved":      {perWave(of(canary, content)), gate.Wave{}, content},
		"no rollout decides, and the content is approved": {perWave(content), gate.Wave{}, ""},
		"each rollout is approved, and a wave is":         {ruled(policies.ApprovalPerRollout, of(canary, content)), canary, content},
		"each rollout is approved, and the content is":    {ruled(policies.ApprovalPerRollout, content), canary, ""},
		"nothing has to be approved, and there is a wave": {ruled(policies.ApprovalNone), canary, ""},
		"there is no policy, and there is a wave":         {gate.New("logs", nil, nil), canary, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := tc.gate.In(tc.wave)
			v := g.Judge(gate.Cluster{}, content, noon())
			if tc.held == "" {
				assert.Empty(t, v.Held)
				return
			}
			assert.Contains(t, v.Held, tc.held)
			assert.False(t, g.Open())
			assert.True(t, v.Wake.IsZero(), "a person ends it")
		})
	}
}

// Who chooses the name of an add-on, a content or a group must not find two of one name.
func TestTheNameOfAWaveIsOfOneWaveOfOneContent(t *testing.T) {
	g := gate.New("logs", policy(policies.AddOnPolicySpec{Approval: policies.ApprovalPerWave}), nil)
	seen := map[string]string{}
	for _, content := range []string{"a", "b", "a\x00b"} {
		for _, key := range []string{"", "b", "c", "b\x00c"} {
			name := g.In(gate.Wave{Key: key}).NameOf(gate.ContentName("/wave", content))
			if key == "" {
				name = gate.ContentName("logs", content)
			}
			assert.Len(t, name, 40)
			assert.Empty(t, seen[name], "%q of %q", key, content)
			seen[name] = content + "," + key
		}
	}
}
