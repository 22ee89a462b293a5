package gate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

func policy(spec policies.AddOnPolicySpec) *policies.AddOnPolicy {
	return &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "logs"}, Spec: spec}
}

// window is one that begins at a minute of every day, changed by edits.
func window(name, kind, schedule string, lasts time.Duration, edit ...func(*policies.MaintenanceWindowSpec),
) policies.MaintenanceWindow {
	w := policies.MaintenanceWindow{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policies.MaintenanceWindowSpec{Kind: kind, Schedule: schedule, Duration: metav1.Duration{Duration: lasts}},
	}
	for _, e := range edit {
		e(&w.Spec)
	}
	return w
}

func labelled(labels map[string]string) func(*policies.MaintenanceWindowSpec) {
	return func(s *policies.MaintenanceWindowSpec) { s.ClusterSelector.MatchLabels = labels }
}

// Shows: policies/policy-verdict
func TestWhetherAClusterMayBeginToChange(t *testing.T) {
	const waits = "waits for its turn in the rollout: "
	content := gate.ContentName("logs", "addontemplates logs@1")
	night := window("night", "Allow", "0 1 * * *", 4*time.Hour)
	shop := gate.Cluster{
		Labels: map[string]string{"kind": "shop", "vendor": "k3s"}, Claims: map[string]string{"zone": "Asia/Tokyo", "bad": "Mars"},
	}
	asks := policy(policies.AddOnPolicySpec{Approval: policies.ApprovalPerRollout, Approved: []string{"other"}})
	both := policy(policies.AddOnPolicySpec{Approval: policies.ApprovalPerRollout, Approved: []string{"other", content}})
	claim := func(name string) func(*policies.MaintenanceWindowSpec) {
		return func(s *policies.MaintenanceWindowSpec) { s.TimeZoneClaim = name }
	}
	for sentence, tc := range map[string]struct {
		policy *policies.AddOnPolicy
		all    []policies.MaintenanceWindow
		held   string
		wake   string
	}{
		"without any policy":   {nil, nil, "", ""},
		"with an empty policy": {policy(policies.AddOnPolicySpec{}), nil, "", ""},
		"what is approved":     {both, nil, "", ""},
		"what is not approved": {asks, nil, "AddOnPolicy logs does not approve content " + content, ""},
		"while it is paused":   {policy(policies.AddOnPolicySpec{Paused: &policies.Pause{}}), nil, "AddOnPolicy logs is paused", ""},
		"a pause says why, in one line": {
			policy(policies.AddOnPolicySpec{Paused: &policies.Pause{Reason: "incident 7,\nask Ann"}, Approval: policies.ApprovalPerRollout}),
			nil, "AddOnPolicy logs is paused: incident 7, ask Ann", "",
		},
		"outside all windows": {
			nil, []policies.MaintenanceWindow{night}, "no MaintenanceWindow allows it now; it may begin at 2026-12-01T01:00:00Z",
			"2026-12-01T01:00:00Z",
		},
		"in a window": {nil, []policies.MaintenanceWindow{window("day", "Allow", "0 8 * * *", 8*time.Hour)}, "", "2026-11-30T16:00:00Z"},
		"in one that denies": {
			nil, []policies.MaintenanceWindow{window("freeze", "Deny", "0 0 30 11 *", 48*time.Hour), night},
			"MaintenanceWindow freeze denies it; it may begin at 2026-12-02T01:00:00Z", "2026-12-01T01:00:00Z",
		},
		"in one that denies for ever": {
			nil, []policies.MaintenanceWindow{window("freeze", "Deny", "* * * * *", time.Hour)},
			"MaintenanceWindow freeze denies it, and it is not known when it may begin", "any",
		},
		"windows of other add-ons": {
			nil, []policies.MaintenanceWindow{window("a", "Deny", "* * * * *", time.Hour, func(s *policies.MaintenanceWindowSpec) {
				s.AddOns = []string{"metrics"}
			})}, "", "",
		},
		"windows of other clusters": {
			nil, []policies.MaintenanceWindow{
				window("a", "Deny", "* * * * *", time.Hour, labelled(map[string]string{"kind": "office"})),
				window("b", "Deny", "* * * * *", time.Hour, labelled(map[string]string{"kind": "shop", "vendor": "eks"})),
			}, "", "",
		},
		"a window of this cluster": {
			nil, []policies.MaintenanceWindow{
				window("b", "Allow", "0 1 * * *", time.Hour, labelled(map[string]string{"vendor": "k3s", "kind": "shop"})),
			}, "no MaintenanceWindow allows it now; it may begin at 2026-12-01T01:00:00Z", "2026-12-01T01:00:00Z",
		},
		"in the time zone of a cluster": { // It is 21 o'clock in Tokyo.
			nil, []policies.MaintenanceWindow{window("evening", "Allow", "0 20 * * *", 2*time.Hour, claim("zone"))}, "", "2026-11-30T13:00:00Z",
		},
		"without the claim of a time zone": {
			nil, []policies.MaintenanceWindow{window("evening", "Allow", "0 20 * * *", 2*time.Hour, claim("none"))},
			"MaintenanceWindow evening cannot be used: the cluster has no claim none, which is to name its time zone", "",
		},
		"with a claim that names none": {
			nil, []policies.MaintenanceWindow{window("evening", "Allow", "0 20 * * *", 2*time.Hour, claim("bad"))},
			`MaintenanceWindow evening cannot be used: "Mars" is not the name of a time zone, such as Europe/Berlin`, "",
		},
		"a time zone of the machine": {
			nil, []policies.MaintenanceWindow{window("evening", "Allow", "0 20 * * *", time.Hour, func(s *policies.MaintenanceWindowSpec) { s.TimeZone = "Local" })},
			`MaintenanceWindow evening cannot be used: "Local" is not the name of a time zone, such as Europe/Berlin`, "",
		},
		"a schedule that cannot be read": {
			nil, []policies.MaintenanceWindow{window("x", "Allow", "0 20 * *", time.Hour), window("y", "Allow", "bad", time.Hour)},
			`MaintenanceWindow x cannot be used: schedule "0 20 * *": expected exactly 5 fields, found 4: [0 20 * *]`, "",
		},
		"a selector that cannot be read": {
			nil, []policies.MaintenanceWindow{window("x", "Allow", "@daily", time.Hour, labelled(map[string]string{"a b": "c"}))},
			"any", "",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := gate.New("logs", tc.policy, tc.all)
			v := g.Judge(shop, content, noon())
			switch tc.held {
			case "":
				assert.Empty(t, v.Held)
			case "any":
				assert.NotEmpty(t, v.Held)
			default:
				assert.Equal(t, waits+tc.held, v.Held)
			}
			if tc.wake != "any" {
				wake := ""
				if !v.Wake.IsZero() {
					wake = v.Wake.UTC().Format(time.RFC3339)
				}
				assert.Equal(t, tc.wake, wake)
			}
			if g.Open() {
				assert.Empty(t, v.Held, "what is open holds nobody")
			}
			assert.Equal(t, v, g.Judge(shop, content, noon()), "it decides the same again")
		})
	}
}

func TestAnApprovalIsOfOneContent(t *testing.T) {
	assert.NotEqual(t, gate.ContentName("logs", "a"), gate.ContentName("logs", "b"))
	assert.NotEqual(t, gate.ContentName("logs", "a"), gate.ContentName("metrics", "a"))
	assert.Len(t, gate.ContentName("logs", "a"), 40)
}
