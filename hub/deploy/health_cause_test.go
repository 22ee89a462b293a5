package deploy

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/names"
)

func TestWhatTheAgentSawStandsBesideWhatTheHubSees(t *testing.T) {
	saw := []metav1.Condition{{
		Type: names.ConditionWorkloadsReady, Status: metav1.ConditionFalse, Message: "Pod ns/p: no image. Correct it.",
	}}
	for name, tc := range map[string]struct {
		health metav1.Condition
		saw    []metav1.Condition
		want   string
	}{
		"pods are not ready":   {available("False", "ProbeUnavailable", "Not available: d."), saw, "Not available: d. Pod ns/p: no image. Correct it."},
		"nothing was reported": {available("Unknown", "NoProbeResult", "Nothing yet: d."), saw, "Nothing yet: d. Pod ns/p: no image. Correct it."},
		"nobody looked":        {available("False", "ProbeUnavailable", "Not available: d."), nil, "Not available: d."},
		"all are ready":        {available("True", "ProbeAvailable", "All."), saw, "All."},
		"it is not applied":    {available("Unknown", "WorkNotApplied", "Not applied."), saw, "Not applied."},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, withCause(tc.health, tc.saw).Message) })
	}
}
