package library_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// A program is replaced by one whose health probe is another: without a template there is no rollout that would bring
// it, so it counts at once. The works stay.
//
// Shows: hub/library-probe-changes
func TestAnotherProbeInANewReleaseCountsAtOnce(t *testing.T) {
	const cluster = "releases"
	join(t, cluster)
	add := install(t, cluster, changing, nil)
	add.deploys("state")
	add.report(feed{main: 1, extra: 1, node: 1})
	add.mode(addonv1beta1.HealthCheckModeCustomized)
	add.has(available, metav1.ConditionTrue, "ProbeAvailable")

	next := func() {
		manager.Stop()
		release.Add(1)
		manager.Start()
	}
	next() // It renews a Lease.
	add.mode(addonv1beta1.HealthCheckModeLease)

	next() // It has a check.
	add.mode(addonv1beta1.HealthCheckModeCustomized)
	add.deploys(".data.phase")
	add.report(feed{phase: "Drifting"})
	add.has(available, metav1.ConditionFalse, "ProbeUnavailable", "the station on releases is Drifting")

	next() // It renews a Lease again.
	add.mode(addonv1beta1.HealthCheckModeLease)

	next() // Its Deployments count.
	add.mode(addonv1beta1.HealthCheckModeCustomized)
	add.deploys("WellKnownStatus")
	add.report(feed{main: 1, extra: 1})
	add.has(available, metav1.ConditionTrue, "ProbeAvailable")
	add.report(feed{main: 1})
	add.has(available, metav1.ConditionFalse, "ProbeUnavailable", "Deployment weather/extra")
}

// Shows: hub/library-health, hub/health-probes
func TestEachProberJudgesWhatItIsFor(t *testing.T) {
	t.Parallel()
	type judged struct {
		feed   feed
		status metav1.ConditionStatus
		reason string
		says   string
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	const well, ill = "ProbeAvailable", "ProbeUnavailable"
	for addOn, steps := range map[string][]judged{
		fields: {
			{feed{phase: "Starting"}, no, ill, "the station on prober-fields is Starting"},
			{feed{phase: "Ready"}, yes, well, ""},
			{feed{phase: "Burning"}, no, ill, "add-on fields on cluster prober-fields: the health check failed: the program " +
				"of the add-on panicked at library/authors_test.go:"},
			{feed{phase: "Ready"}, yes, well, ""},
		},
		deployments: {
			{feed{}, no, ill, "Deployment weather/main"}, {feed{main: 1}, no, ill, "Deployment weather/extra"},
			{feed{main: 1, extra: 1}, yes, well, ""},
		},
		named: {
			{feed{extra: 1}, no, ill, "no pod of Deployment weather/main is ready (0 of 1)"}, {feed{main: 1}, yes, well, ""},
		},
		workloads: {
			{feed{main: 1, extra: 1}, no, ill, "DaemonSet weather/node"}, {feed{main: 1, extra: 1, node: 1}, yes, well, ""},
		},
	} {
		t.Run(addOn, func(t *testing.T) {
			t.Parallel()
			cluster := "prober-" + addOn
			join(t, cluster)
			add := install(t, cluster, addOn, nil)
			add.has(available, unknown, "WorkNotApplied", "is not applied yet")
			add.mode(addonv1beta1.HealthCheckModeCustomized)
			for _, step := range steps {
				add.report(step.feed)
				add.has(available, step.status, step.reason, step.says)
			}
		})
	}
	t.Run(custom, func(t *testing.T) {
		t.Parallel()
		join(t, "prober-custom")
		add := install(t, "prober-custom", custom, nil)
		add.deploys("state")
		add.report(feed{})
		add.has(addonv1beta1.ManagedClusterAddOnManifestApplied, yes, "")
		add.mode(addonv1beta1.HealthCheckModeCustomized)
		add.lacks(available)
	})
}
