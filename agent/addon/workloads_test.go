package addon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/unready"
)

func TestWhenWorkloadsAreLookedAt(t *testing.T) {
	probed := func(status metav1.ConditionStatus, reason string) facts {
		f := addonWith()
		f.addon.Status.HealthCheck.Mode = addonv1beta1.HealthCheckModeCustomized
		f.addon.Status.Conditions = []metav1.Condition{{
			Type: "Available", Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(noon),
		}}
		return f
	}
	broken := func(change func(*facts)) facts {
		f := probed(metav1.ConditionFalse, "ProbeUnavailable")
		change(&f)
		return f
	}
	deleted := metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		facts facts
		want  bool
	}{
		"an add-on that is gone":            {facts{}, false},
		"without a word of the hub":         {addonWith(), false},
		"the hub finds pods not ready":      {broken(func(*facts) {}), true},
		"no pod was reported":               {probed(metav1.ConditionUnknown, "NoProbeResult"), true},
		"all are ready":                     {probed(metav1.ConditionTrue, "ProbeAvailable"), false},
		"nothing was applied yet":           {probed(metav1.ConditionUnknown, "WorkNotApplied"), false},
		"the cluster is silent":             {probed(metav1.ConditionUnknown, "ManagedClusterLeaseUpdateStopped"), false},
		"the cluster is silent for the hub": {broken(func(f *facts) { f.clusterUnknown = true }), false},
		"it is on its way out":              {broken(func(f *facts) { f.addon.DeletionTimestamp = &deleted }), false},
		"a lease tells the health":          {broken(func(f *facts) { f.addon.Status.HealthCheck.Mode = "Lease" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			since, matter := workloadsUnready(tc.facts)
			assert.Equal(t, tc.want, matter)
			if tc.want {
				assert.True(t, noon.Equal(since))
			}
		})
	}
}

func TestWhichManifestsAreWorkloads(t *testing.T) {
	for raw, want := range map[string]unready.Target{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"ns"}}`: {Kind: "Deployment", Namespace: "ns", Name: "d"},
		`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"d","namespace":"ns"}}`:  {Kind: "DaemonSet", Namespace: "ns", Name: "d"},
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"}}`:                        {},
		`{"apiVersion":"example.com/v1","kind":"Deployment","metadata":{"name":"d"}}`:           {},
		`not json`: {},
		``:         {},
	} {
		target, ok := targetOf([]byte(raw))
		assert.Equal(t, want, target, raw)
		assert.Equal(t, want.Kind != "", ok, raw)
	}
}

func TestLooksAtWorkloadsBecomeRareWhileNothingChanges(t *testing.T) {
	l := workloadInspection{pause: firstInspection}
	for _, want := range []time.Duration{4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second} {
		l.pause, l.text = l.pauseBefore(""), ptr.To("")
		assert.Equal(t, want, l.pause, "also while nothing can be said")
	}
	l.pause, l.text = l.pauseBefore("why"), ptr.To("why")
	assert.Equal(t, 5*time.Second, l.pause, "what is new may change again soon")
	for range 10 {
		l.pause = l.pauseBefore("why")
	}
	assert.Equal(t, 5*time.Minute, l.pause)
}

func TestTheConditionOfWorkloadsIsThereOnlyWhileThereIsSomethingToSay(t *testing.T) {
	f := addonWith()
	f.now = noon
	var conditions []metav1.Condition
	conclude := func(text *string) {
		f.workloads = text
		concludeWorkloads(f, &conditions)
	}
	conclude(ptr.To(""))
	require.Empty(t, conditions)
	conclude(ptr.To("why"))
	require.Len(t, conditions, 1)
	assert.Equal(t, names.ConditionWorkloadsReady, conditions[0].Type)
	assert.Equal(t, "why", conditions[0].Message)
	conclude(nil)
	require.Len(t, conditions, 1, "while nobody looked, it stays")
	conclude(ptr.To(""))
	require.Empty(t, conditions)
}
