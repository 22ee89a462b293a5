package dashboards

import "strings"

// exception is a finding that is right as it is.
type exception struct {
	rule string
	// about is a part of what the finding says.
	about string
	// because is why.
	because string
}

// exceptions are all of them.
func exceptions() []exception {
	return []exception{{
		rule: "counter", about: "spokelet_fleet_heartbeat_age_seconds_",
		because: "it is a histogram of the ages at this moment and not of what happened: its buckets rise and fall, and " +
			"histogram_quantile takes them as they are (docs/reference/metrics.md)",
	}}
}

// without returns the findings that have no exception.
func without(found []Finding, of []exception) []Finding {
	var left []Finding
	for _, f := range found {
		excepted := false
		for _, e := range of {
			excepted = excepted || e.rule == f.Rule && strings.Contains(f.Says, e.about)
		}
		if !excepted {
			left = append(left, f)
		}
	}
	return left
}
