package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What agents, authors and tenants write gets into policies and windows: claims, names of configurations, messages.
func TestHostileTextOfPoliciesAndWindowsDoesNoHarm(t *testing.T) {
	evil := "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\nFAIL  everything\r"
	long := evil + strings.Repeat("x", 1<<20)
	placements := []any{map[string]any{"placement": long, "content": evil + "c", "problem": long, "completed": []any{
		map[string]any{"content": long, "configurations": []any{}},
	}}}
	policy := addOnPolicy(
		map[string]any{
			"approval": "PerWave", "paused": map[string]any{"reason": long}, "onFailure": map[string]any{"action": "Undo"},
			"dependsOn": []any{map[string]any{"name": evil, "type": "Optional", "condition": long}},
		},
		map[string]any{
			"waiting": 1, "problem": long, "unused": []any{long}, "placements": placements,
			"contents": []any{map[string]any{
				"name": evil, "wave": long, "content": long, "configurations": []any{long, evil}, "clusters": 1, "turn": true,
			}},
			"undone": []any{map[string]any{
				"content": evil, "configurations": []any{long}, "why": long, "by": "Policy", "action": "Undo", "clusters": 1,
				"since": "2026-11-30T12:00:00Z",
			}},
		})
	window := of("", "night")
	window["spec"] = map[string]any{"kind": evil, "schedule": long, "duration": "1h", "timeZoneClaim": long, "addOns": []any{long}}
	window["status"] = map[string]any{"problem": long, "clusters": -1, "observedGeneration": 1}
	h := maintained()
	h.lists[pathAddOnPolicies] = append(h.lists[pathAddOnPolicies][:0:0], policy)
	h.lists[pathWindows] = append(h.lists[pathWindows][:0:0], window)
	for _, args := range [][]string{
		{"rollout", "status", "addon", "logs"}, {"rollout", "approve", "addon", "logs", "--dry-run"},
		{"rollout", "approve", "addon", "logs", "--all-waves", "--dry-run"},
		{"rollout", "undo", "addon", "logs", "--dry-run"}, {"rollout", "retry", "addon", "logs", "--dry-run"},
		{"rollout", "pause", "addon", "logs", "--dry-run"}, {"rollout", "resume", "addon", "logs", "--dry-run"},
		{"get", "windows"}, {"get", "windows", "-o", "wide"}, {"get", "addons", "-A"}, {"check"}, {"tree"},
	} {
		got := plays(t, h, args...)
		for _, out := range []string{got.out, got.errs} {
			assert.False(t, strings.ContainsAny(out, "\x1b\u202e\r"), "%v", args)
			assert.NotContains(t, out, "\nFAIL  every", "%v", args)
			assert.Less(t, len(out), 64<<10, "%v", args)
		}
	}
}
