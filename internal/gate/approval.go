package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/spokelet/spokelet/internal/policies"
)

// nameLength is how many bytes of a hash name a content. An author chooses contents, and must not find two of one name.
const nameLength = 20

// ContentName returns the name by which a content of an add-on is approved.
func ContentName(addOn, content string) string { return hash(addOn, content) }

func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:nameLength])
}

// Wave is a wave of a rollout: what AddOnPolicies with approval PerWave approve of a content.
type Wave struct {
	// Key tells it from all other waves of the add-on, and Title names it for people.
	Key, Title string
}

// wavePrefix is not the name of an add-on, so the name of a wave is never that of a content.
const wavePrefix = "/wave"

// In returns the gate for clusters in a wave. Where no rollout decides, there is one wave: the content.
func (g Gate) In(wave Wave) Gate {
	g.wave = wave
	return g
}

// PerWave reports whether each wave of a content is approved for itself.
func (g Gate) PerWave() bool {
	return g.policy != nil && g.policy.Spec.Approval == policies.ApprovalPerWave
}

// Title names the wave that the gate is for; "" for none.
func (g Gate) Title() string { return g.wave.Title }

// NameOf returns the name by which a content, by the name of ContentName, is approved here: its own, or that of its
// wave.
func (g Gate) NameOf(content string) string {
	if !g.PerWave() || g.wave.Key == "" {
		return content
	}
	return hash(wavePrefix, content, g.wave.Key)
}

// Approved reports whether the policy approves a content, by the name of ContentName, or the wave of it.
func (g Gate) Approved(content string) bool {
	return slices.Contains(g.policy.Spec.Approved, content) || slices.Contains(g.policy.Spec.Approved, g.NameOf(content))
}

// approves reports whether contents, or their waves, have to be approved.
func (g Gate) approves() bool {
	return g.policy.Spec.Approval == policies.ApprovalPerRollout || g.PerWave()
}

// inWave names the wave after what is not approved; "" where there is none.
func (g Gate) inWave() string {
	if !g.PerWave() || g.wave.Key == "" {
		return ""
	}
	return ", which is for " + g.wave.Title
}
