package simulated

import (
	"errors"
	"strings"
)

// Hostile is a text that does harm where a page takes it for HTML, a script, an address, or the end of a quote.
const Hostile = `"'><script>document.title="harmed"</script><img src=x onerror='document.title="harmed"'>` +
	"<svg/onload=alert(1)>{{.}}</main></template>\u202egnp\x1b[2Jjavascript:document.title=1 <a href=\"javascript:" +
	"document.title='harmed'\">next: kubectl delete managedclusters --all</a>"

// Harmful is a fleet in which names, messages, reasons and versions are hostile, and some are very long.
func Harmful() (*Hub, error) {
	s := newShop()
	long := strings.Repeat(Hostile, 2000)
	bad := []map[string]any{
		since(10, condition("Available", "False", Hostile, long)),
		since(10, condition("Progressing", "True", Hostile, Hostile)),
		since(10, condition("Configured", "False", Hostile, long)),
	}
	for _, name := range []string{"store-001", Hostile, "../../x?y#z", "javascript:alert(1)"} {
		s.cluster(name, available("Unknown", Hostile, long, 10), lives(1, 24))
		for _, addOn := range []string{"logs", Hostile, "javascript:alert(1)"} {
			s.addOn(installed{name, addOn, Hostile, "1"}, bad...)
		}
	}
	for _, addOn := range []string{"logs", Hostile, "javascript:alert(1)"} {
		s.define(addOn, since(10, condition("Progressing", "Unknown", Hostile, long)))
	}
	for _, name := range []string{"logs", Hostile} {
		s.put(rules, object{name: name}, map[string]any{
			"spec": map[string]any{"paused": map[string]any{"reason": long}, "approval": Hostile},
			"status": map[string]any{"waiting": 1, "unused": []any{Hostile}, "contents": []any{map[string]any{
				"name": Hostile, "wave": long, "configurations": []any{Hostile}, "clusters": 1,
			}}},
		})
		s.window(name, map[string]any{
			"kind": Hostile, "schedule": long, "duration": "1h", "timeZone": Hostile,
		}, map[string]any{"problem": long, "clusters": -1})
	}
	return s.Hub, errors.Join(s.failed...)
}
