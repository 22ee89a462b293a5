package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A schema of OCM takes times that Go does not: an agent writes one into its own status. What the plugin says about all
// others must not depend on that.
func TestOneClusterThatCannotBeDecodedHidesNoOther(t *testing.T) {
	for sentence, tc := range map[string]struct{ path string }{
		"an agent writes it into its ManagedCluster": {pathClusters}, "into an add-on": {pathAddOns}, "into a work": {pathWorks},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := shop()
			part(h.lists[tc.path][6], "status")["conditions"] = []any{map[string]any{
				"type": "Any", "status": "True", "reason": "Any", "message": "", "lastTransitionTime": "2026-11-01t08:00:00z",
			}}
			for _, args := range [][]string{{"check"}, {"tree"}, {"why", "addon", "logs", "-n", "store-001"}, {"get", "works", "-A"}} {
				got := plays(t, h, args...)
				assert.NotEqual(t, statusUse, got.status, "%v: %s", args, got.errs)
				assert.Contains(t, got.out, "store-001", args)
			}
		})
	}
}

// An instant of the year 10000 in UTC is not known, and no answer fails because of it.
func TestAnInstantThatNoAnswerCanHaveIsNotKnown(t *testing.T) {
	const last = "9999-12-31T23:59:59-23:59"
	h := shop()
	for _, path := range []string{pathClusters, pathAddOns, pathWorks} {
		part(h.lists[path][6], "status")["conditions"] = []any{map[string]any{
			"type": "Available", "status": "False", "reason": "Any", "message": "", "lastTransitionTime": last,
		}, map[string]any{
			"type": "Applied", "status": "False", "reason": "Any", "message": "", "lastTransitionTime": last,
		}, map[string]any{
			"type": "HubAcceptedManagedCluster", "status": "False", "reason": "HubClusterAdminDenied", "message": "",
			"lastTransitionTime": last,
		}}
	}
	for _, args := range [][]string{{"check"}, {"tree"}, {"get", "works", "-A"}, {"get", "clusters"}, {"why", "cluster", "store-007"}} {
		for _, format := range []string{"json", "yaml", "wide"} {
			got := plays(t, h, append(args, "-o", format)...)
			assert.NotContains(t, []int{statusUse, statusBlind}, got.status, "%v: %s", args, got.errs)
			assert.NotEmpty(t, got.out)
		}
	}
}
