package cli

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const pathWindows = "/apis/addon.spokelet.io/v1alpha1/maintenancewindows"

// maintained is a shelf with a policy and windows.
func maintained() *hub {
	h := shelf()
	h.lists[pathAddOnPolicies] = []map[string]any{addOnPolicy(map[string]any{
		"approval": "PerWave", "paused": map[string]any{"reason": "incident 7\x1b[31m"}, "removals": "InWindows",
		"onFailure": map[string]any{"action": "Undo", "after": "10m0s"},
		"dependsOn": []any{map[string]any{"name": "network"}, map[string]any{"name": "proxy", "type": "Optional", "condition": "Ready"}},
	}, map[string]any{
		"waiting": 30, "unused": []any{"0123456789ab"}, "problem": "logs > network > logs",
		"undone": []any{map[string]any{
			"content": "dddddddddddd", "by": "Policy", "why": "5 of 40 clusters failed", "since": "2026-11-29T10:00:00Z", "clusters": 5,
		}, map[string]any{"content": "eeeeeeeeeeee", "by": "Person", "since": "2026-11-28T12:00:00Z", "clusters": 0}},
		"placements": []any{
			map[string]any{"placement": "add-ons/stores", "content": "dddddddddddd", "problem": "content dddddddddddd is not undone: no content completed before it"},
			map[string]any{"placement": "-", "content": "dddddddddddd", "problem": "nothing is undone by itself"},
			map[string]any{"placement": "add-ons/others", "content": "dddddddddddd"},
		},
		"contents": []any{
			wave("aaaaaaaaaaaa", "decision group 0 (canary) of placement add-ons/stores", true),
			wave("bbbbbbbbbbbb", "decision group 1 of placement add-ons/stores", false),
			content("ffffffffffff", false),
		},
	})}
	window := func(name string, spec, status map[string]any) map[string]any {
		w := of("", name)
		w["spec"], w["status"] = spec, status
		return w
	}
	h.lists[pathWindows] = []map[string]any{
		window("night", map[string]any{"kind": "Allow", "schedule": "0 1 * * *", "duration": "4h0m0s", "timeZone": "Asia/Tokyo"},
			map[string]any{"observedGeneration": 1, "clusters": 40, "nextStart": "2026-11-29T16:00:00Z"}),
		window("december", map[string]any{"kind": "Deny", "schedule": "0 0 1 12 *", "duration": "744h0m0s", "until": "2027-01-01T00:00:00Z"},
			map[string]any{"observedGeneration": 1, "clusters": 40, "active": true}),
		window("claimed", map[string]any{"kind": "Allow", "schedule": "@daily", "duration": "30m0s", "timeZoneClaim": "zone", "addOns": []any{"metrics"}},
			map[string]any{"observedGeneration": 1, "clusters": 3, "problem": "the cluster has no claim zone, which is to name its time zone"}),
		window("new", map[string]any{"kind": "Allow", "schedule": "@daily", "duration": "1h30m0s"}, map[string]any{}),
	}
	return h
}

func TestPoliciesAndWindowsAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		args   []string
		status int
	}{
		"rollout-policy":    {[]string{"rollout", "status", "addon", "logs"}, statusProblem},
		"get-windows":       {[]string{"get", "windows"}, statusWell},
		"get-windows-wide":  {[]string{"get", "windows", "-o", "wide"}, statusWell},
		"get-windows-json":  {[]string{"get", "windows", "-o", "json"}, statusWell},
		"get-windows-wrong": {[]string{"get", "windows", "--not-ready", "-o", "name"}, statusWell},
	} {
		t.Run(name, func(t *testing.T) {
			got := plays(t, maintained(), tc.args...)
			assert.Equal(t, tc.status, got.status, got.errs)
			assert.Empty(t, got.errs)
			golden(t, name, got.out)
		})
	}
}

// A hub of OCM has none of our kinds, and nothing is amiss by that.
func TestAHubWithoutWindowsIsSaidToHaveNone(t *testing.T) {
	got := plays(t, shelf(), "rollout", "status", "addon", "logs")
	assert.NotContains(t, got.out, "addonpolicies")
	got = plays(t, shelf(), "get", "windows")
	assert.Equal(t, statusBlind, got.status)
	assert.Contains(t, got.errs, "maintenancewindows.addon.spokelet.io: the hub does not serve it")
}

func TestABundleHasPoliciesAndWindows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fleet.tgz")
	got := plays(t, maintained(), "bundle", "-f", file)
	require.Equal(t, statusWell, got.status, got.errs)
	got = run(t, "get", "windows", "--from", file)
	assert.Equal(t, statusWell, got.status, got.errs)
	assert.Contains(t, got.out, "december")
	got = run(t, "rollout", "status", "addon", "logs", "--from", file)
	assert.Contains(t, got.out, "paused, so no cluster begins to change: incident 7")

	got = plays(t, shelf(), "bundle", "-f", file)
	require.Equal(t, statusWell, got.status, got.errs)
	assert.NotContains(t, got.out, "addonpolicies", "a hub of OCM has none")
	got = run(t, "rollout", "status", "addon", "logs", "--from", file)
	assert.NotContains(t, got.out+got.errs, "addonpolicies")
}

// What may not be read is told, and the rest is shown.
func TestPoliciesThatMayNotBeReadAreAGap(t *testing.T) {
	h := maintained()
	h.forbidden = map[string]bool{"addonpolicies": true, "maintenancewindows": true}
	got := plays(t, h, "rollout", "status", "addon", "logs")
	assert.Equal(t, statusProblem, got.status, got.errs)
	assert.Contains(t, got.out, "store-001")
	assert.Contains(t, got.out, `{apiGroups: ["addon.spokelet.io"], resources: [addonpolicies], verbs: [list]}`)
}
