package simulated

// The waves of the content of add-on proxy that wait for a person, by the names that approve them.
const (
	firstWave = "3f0e6c1a5f1f0a7c94f2a1b0c7d86e4451b2a9d0"
	restWave  = "a1b0c7d86e4451b2a9d03f0e6c1a5f1f0a7c94f2"
	ofFirst   = "mandatory decision group 0 (canary) of placement add-ons/stores"
	ofRest    = "all other clusters of placement add-ons/stores"
)

// proxy adds an add-on whose waves wait for a person.
func (s *shop) proxy() {
	s.define("proxy", since(30, condition("Progressing", "True", "Progressing",
		"selected clusters 44. configured addons 0/44 progressing..., 0 failed 0 timeout. 4 of 4 clusters of mandatory "+
			"decision group 0 (canary) wait for a policy or a window, so later groups wait.")))
	for i, name := range stores() {
		wave, of := restWave, ofRest
		if i < 4 {
			wave, of = firstWave, ofFirst
		}
		further := []map[string]any{since(30, condition("Configured", "False", "ConfigurationsNotConfigured",
			"Configurations updated and not configured yet: waits for its turn in the rollout: AddOnPolicy proxy does not "+
				"approve content "+wave+", which is for "+of))}
		if i%22 == 21 {
			further = append(further, since(61, condition("Available", "Unknown", "ManagedClusterAddOnLeaseUpdateStopped",
				"proxy add-on stopped updating its lease.")))
		}
		s.addOn(installed{name, "proxy", "2", "2"}, further...)
	}
}

// rule adds policies and windows of a shop: one add-on is paused, the waves of another one are approved, and one window
// cannot be used.
func (s *shop) rule() {
	content := func(name, wave string, clusters int, turn bool) map[string]any {
		return map[string]any{
			"name": name, "clusters": clusters, "approved": false, "wave": wave, "turn": turn,
			"configurations": []any{"addontemplates.addon.open-cluster-management.io//proxy-v3"},
			"content":        "9d1f0a7c94f2a1b0c7d86e4451b2a9d03f0e6c1a",
		}
	}
	s.put(rules, object{name: "logs"}, map[string]any{
		"spec":   map[string]any{"paused": map[string]any{"reason": "incident 7: the image is gone, ask Ann"}},
		"status": map[string]any{"observedGeneration": 1, "waiting": 0},
	})
	s.put(rules, object{name: "proxy"}, map[string]any{
		"spec": map[string]any{"approval": "PerWave", "approved": []any{"0c7d86e4451b2a9d03f0e6c1a5f1f0a7c94f2a1b"}},
		"status": map[string]any{
			"observedGeneration": 1, "waiting": 44, "unused": []any{"0c7d86e4451b2a9d03f0e6c1a5f1f0a7c94f2a1b"},
			"contents": []any{content(firstWave, ofFirst, 4, true), content(restWave, ofRest, 40, false)},
		},
	})
	s.window("december", map[string]any{
		"kind": "Deny", "schedule": "0 0 15 12 *", "duration": "432h", "timeZone": "Europe/Berlin",
	}, map[string]any{"active": false, "nextStart": "2026-12-14T23:00:00Z", "clusters": 45})
	s.window("night", map[string]any{
		"kind": "Allow", "schedule": "0 1 * * *", "duration": "4h", "timeZoneClaim": "timezone.example.com",
		"addOns": []any{"logs", "metrics"},
	}, map[string]any{
		"active": false, "clusters": 45,
		"problem": "the cluster has no claim timezone.example.com, which is to name its time zone",
	})
	s.window("weekend", map[string]any{
		"kind": "Allow", "schedule": "0 8 * * SUN", "duration": "10h", "addOns": []any{"proxy"},
	}, map[string]any{"active": true, "nextStart": "2026-12-06T08:00:00Z", "clusters": 45})
}

// window adds a window that the hub manager has seen.
func (s *shop) window(name string, spec, status map[string]any) {
	status["observedGeneration"] = 1
	s.put(windows, object{name: name}, map[string]any{"spec": spec, "status": status})
}
