package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What does not exist is not well: a name that is mistyped must not pass for "all is well".
func TestWhatDoesNotExistIsNotWell(t *testing.T) {
	for _, args := range [][]string{
		{"check", "--cluster", "stoer-001"}, {"tree", "cluster", "stoer-001"},
	} {
		got := plays(t, shop(), args...)
		assert.NotEqual(t, statusWell, got.status, "%v: %s", args, got.out)
	}
	got := plays(t, shop(), "check", "--cluster", "stoer-001")
	assert.Equal(t, statusProblem, got.status)
	assert.Contains(t, got.out, "cluster/stoer-001  a cluster does not exist  [SPK024]")
	h := shop()
	h.lists[pathClusters] = h.lists[pathClusters][:40]
	got = plays(t, h, "tree", "addon", "lgos")
	assert.NotEqual(t, statusWell, got.status, got.out)
}

// A person with the rights for the namespace of a cluster cannot read what is in no namespace, and what was not read
// does not lack.
func TestWhatMayNotBeReadIsNotSaidToLack(t *testing.T) {
	h := shop()
	h.forbidden = map[string]bool{"clustermanagementaddons": true, "managedclusters": true, "placementdecisions": true}
	got := plays(t, h, "why", "addon", "metrics", "-n", "store-114")
	assert.Equal(t, statusProblem, got.status, got.errs)
	assert.NotContains(t, got.out, "no ClusterManagementAddOn", "there is one; it may not be read")
}

// Who may not read all clusters or all add-ons is not told that all is well.
func TestWhatMayNotBeReadMayHideProblems(t *testing.T) {
	for _, plural := range []string{"managedclusters", "managedclusteraddons"} {
		h := shop()
		h.lists[pathClusters], h.lists[pathAddOns] = h.lists[pathClusters][:40], h.lists[pathAddOns][10:80]
		h.lists[pathRequests] = nil
		require.Equal(t, statusWell, plays(t, h, "check").status)
		h.forbidden = map[string]bool{plural: true}
		for _, args := range [][]string{{"check"}, {"check", "--cluster", "store-030"}, {"check", "--wait", "1m"}} {
			got := played(t.Context(), t, h, func() { t.Error("time gives no rights") }, args...)
			assert.Equal(t, statusBlind, got.status, "%v: %s", args, got.out)
			assert.Contains(t, got.out, plural, "the gap is named")
			assert.Contains(t, got.out, "0 problems", "what could be read is told")
		}
	}
}

// A part of what says how far a rollout is says nothing.
func TestARolloutOfAddOnsThatMayNotBeReadIsNotJudged(t *testing.T) {
	for _, plural := range []string{"managedclusteraddons", "clustermanagementaddons", "placementdecisions"} {
		h := shelf()
		h.forbidden = map[string]bool{plural: true}
		got := plays(t, h, "rollout", "status", "addon", "logs")
		assert.Equal(t, statusBlind, got.status, got.out)
		assert.NotContains(t, got.out, "there is no add-on on the cluster yet")
		assert.Contains(t, got.errs, plural)
	}
}
