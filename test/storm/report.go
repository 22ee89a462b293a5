package storm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Rows returns the report as pairs of what and how much.
func (r *Report) Rows() [][2]string {
	count := func(actions ...action) string {
		n := 0
		for _, a := range actions {
			n += r.Actions[string(a)]
		}
		return fmt.Sprint(n)
	}
	rows := [][2]string{
		{"edits", fmt.Sprint(r.Edits)},
		{"  works written", count(putWorks)},
		{"  works deleted", count(deleteWork, forgetWork)},
		{"  finalizers and status of works taken away", count(stripWork, clearStatus)},
		{"  manifests broken and mended", count(breakManifest)},
		{"  namespaces deleted without the hub", count(loseNamespace)},
		{"  objects changed by hand", count(setValue, addValue, dropLabel, putObject)},
		{"  objects deleted by hand", count(deleteObject)},
		{"  owner references removed by hand", count(stripOwners)},
		{"  foreign finalizers put on and taken off", count(hold, release)},
		{"  definition of a kind installed or removed by hand", count(gadgetsOn, gadgetsOff)},
		{"  applied records changed by hand", count(wrongRecord, emptyRecord, stripRecord)},
		{"  applied records deleted by hand", count(deleteRecord, vanishRecord)},
		{"  agents killed", count(killAgent)},
		{"  links cut", count(cutLink)},
		{"  API servers restarted", count(downHub, downSpoke)},
		{"edits that found no object", fmt.Sprint(r.Missed)},
		{"objects of which timing decided whether they stay", fmt.Sprint(r.Doubts)},
		{"comparisons of everything, and the longest until all agreed", fmt.Sprintf("%d, %s", r.Calms,
			r.Slowest.Round(time.Millisecond))},
		{"requests of the agent to cluster and hub", fmt.Sprintf("%d, %d", r.Spoke, r.Hub)},
		{"violations", fmt.Sprint(len(r.Violations))},
	}
	for _, name := range slices.Sorted(maps.Keys(r.Lies)) {
		rows = append(rows, [2]string{"  lies: " + name, fmt.Sprint(r.Lies[name])})
	}
	return rows
}

// Check returns the violations as an error.
func (r *Report) Check() error {
	if len(r.Violations) == 0 {
		return nil
	}
	return fmt.Errorf("%d violations:\n%s", len(r.Violations), strings.Join(r.Violations, "\n"))
}
