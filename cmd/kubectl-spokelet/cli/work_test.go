package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// OCM's agent leaves a work alone that is complete: that it does not report a later generation is no trouble with it.
func TestAWorkThatIsCompleteIsNotUnseen(t *testing.T) {
	h := shop()
	w := work("store-020", "job", condition("Applied", "True", "AppliedManifestWorkComplete", "", 800),
		condition("Available", "True", "ResourcesAvailable", "", 800), condition("Complete", "True", "ConditionRulesAggregated", "", 700))
	part(w, "metadata")["generation"] = 2
	h.lists[pathWorks] = append(h.lists[pathWorks], w)
	got := plays(t, h, "why", "work", "addon-job-deploy-0", "-n", "store-020")
	assert.NotContains(t, got.out, "[SPK073]", got.out)
}

// A work of two days that was changed a moment ago has not been out of sight for two days.
func TestAWorkThatChangedIsNotUnseenSinceItWasMade(t *testing.T) {
	h := shop()
	part(h.lists[pathWorks][0], "metadata")["generation"] = 2
	got := plays(t, h, "why", "work", "addon-logs-deploy-0", "-n", "store-001")
	assert.Contains(t, got.out, "[SPK073]")
	assert.NotContains(t, got.out, "since 2d", "the agent reported generation 1 after the work was made")
}

// A signer that fails denies nothing: there is nobody to ask.
func TestARequestThatItsSignerCouldNotSignWasNotDenied(t *testing.T) {
	h := shop()
	h.lists[pathRequests][0]["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Approved", "status": "True", "reason": "ApprovedByPolicy"},
		map[string]any{"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": "organization in csr is not allowed"},
	}}
	got := plays(t, h, "why", "csr", "store-201-abcde")
	assert.Equal(t, statusProblem, got.status)
	assert.NotContains(t, got.out, "was denied")
	assert.Contains(t, got.out, "[SPK027]")
}
