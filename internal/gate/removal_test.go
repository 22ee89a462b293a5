package gate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/policies"
)

// By docs/security.md, the agent of a cluster "may move the window by a day" where its time zone is from a claim. It takes
// the claim away, or writes nonsense: an add-on that no placement wants there goes by UTC.
//
// Shows: policies/removals-claim
func TestAnAgentKeepsNoAddOnForEverByAClaim(t *testing.T) {
	policy := &policies.AddOnPolicy{Spec: policies.AddOnPolicySpec{Removals: policies.RemovalsInWindows}}
	g := New("hello", policy, []policies.MaintenanceWindow{{ObjectMeta: metav1.ObjectMeta{Name: "night"}, Spec: policies.MaintenanceWindowSpec{
		Kind: "Allow", Schedule: "0 1 * * *", Duration: metav1.Duration{Duration: 4 * time.Hour}, TimeZoneClaim: "tz",
	}}})
	for sentence, claims := range map[string]map[string]string{"no claim": nil, "nonsense": {"tz": "nowhere"}} {
		open := false
		for at, hours := time.Date(2030, 1, 1, 0, 30, 0, 0, time.UTC), 0; hours < 72; hours++ {
			open = open || g.JudgeRemoval(Cluster{Claims: claims}, at.Add(time.Duration(hours)*time.Hour)).Held == ""
		}
		assert.True(t, open, "%s: the add-on may go at no hour of three days", sentence)
	}
}
