package deploy

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/names"
)

func judged(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: "Available", Status: status, Reason: reason, Message: message}
}

func TestWhatTheAgentSawStandsBesideWhatTheHubSees(t *testing.T) {
	saw := []metav1.Condition{{
		Type: names.ConditionWorkloadsReady, Status: metav1.ConditionFalse, Message: "Pod ns/p: no image. Correct it.",
	}}
	for name, tc := range map[string]struct {
		health metav1.Condition
		saw    []metav1.Condition
		want   string
	}{
		"pods are not ready":   {judged("False", "ProbeUnavailable", "Not available: d."), saw, "Not available: d. Pod ns/p: no image. Correct it."},
		"nothing was reported": {judged("Unknown", "NoProbeResult", "Nothing yet: d."), saw, "Nothing yet: d. Pod ns/p: no image. Correct it."},
		"nobody looked":        {judged("False", "ProbeUnavailable", "Not available: d."), nil, "Not available: d."},
		"all are ready":        {judged("True", "ProbeAvailable", "All."), saw, "All."},
		"it is not applied":    {judged("Unknown", "WorkNotApplied", "Not applied."), saw, "Not applied."},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, withCause(tc.health, tc.saw).Message) })
	}
}

// TestWhoseHealthFollowsFromWorks has those whose condition Available is left alone, and the mode of each probe.
func TestWhoseHealthFollowsFromWorks(t *testing.T) {
	silent := func(f *facts) {
		f.cluster.Status.Conditions = []metav1.Condition{{
			Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionUnknown,
		}}
	}
	lease, customized := addonv1beta1.HealthCheckModeLease, addonv1beta1.HealthCheckModeCustomized
	for sentence, tc := range map[string]struct {
		probe  addon.HealthProbe
		change func(*facts)
		judged bool
		mode   addonv1beta1.HealthCheckMode
	}{
		"no probe":               {probe: addon.HealthUnchanged},
		"a lease":                {probe: addon.HealthLease, mode: lease},
		"the add-on itself":      {probe: addon.HealthCustom, mode: customized},
		"works":                  {probe: addon.HealthWork, judged: true, mode: customized},
		"Deployments":            {probe: addon.HealthDeployments, judged: true, mode: customized},
		"workloads":              {probe: addon.HealthWorkloads, judged: true, mode: customized},
		"the cluster is Unknown": {probe: addon.HealthWorkloads, change: silent, mode: customized},
		"it is not known what its works are": {
			probe: addon.HealthWorkloads, change: func(f *facts) { f.renderErr = errors.New("held") }, mode: customized,
		},
		"it is not known how to tell": {
			probe: addon.HealthWorkloads, change: func(f *facts) { f.setupErr = errors.New("broken") },
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := factsOf()
			f.setup.Health = tc.probe
			if tc.change != nil {
				tc.change(&f)
			}
			after := conclude(f, plan{worksErr: f.renderErr}, results{})
			condition := meta.FindStatusCondition(after.Status.Conditions, "Available")
			assert.Equal(t, tc.judged, condition != nil)
			assert.Equal(t, tc.mode, after.Status.HealthCheck.Mode)
		})
	}
}
