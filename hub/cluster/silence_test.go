package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/names"
)

// Shows: registration/silence-instant
func TestWhenAClusterCountsAsSilent(t *testing.T) {
	tests := map[string]struct {
		change func(*facts)
		silent bool
		wake   time.Time
	}{
		"not a moment before its lease expires": {
			change: func(f *facts) { f.now = noon().Add(5*time.Minute - time.Nanosecond) }, wake: noon().Add(5 * time.Minute),
		},
		"at the very instant at which it expires": {
			change: func(f *facts) { f.now = noon().Add(5 * time.Minute) }, silent: true,
		},
		"a lease that was never renewed": {change: func(f *facts) { f.lease.Spec.RenewTime = nil }, silent: true},
		"no lease yet is no silence":     {change: func(f *facts) { f.lease = nil }},
		"a leaving cluster without lease": {
			change: func(f *facts) { f.lease, f.cluster.DeletionTimestamp = nil, deletedAt() }, silent: true,
		},
		"a shorter lease expires earlier": {
			change: func(f *facts) { f.cluster.Spec.LeaseDurationSeconds = 1 }, wake: noon().Add(5 * time.Second),
		},
		"no duration means one minute": {
			change: func(f *facts) { f.cluster.Spec.LeaseDurationSeconds = 0 }, wake: noon().Add(5 * time.Minute),
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			tc.change(&f)
			p := decide(f)
			assert.Equal(t, tc.silent, p.silent)
			assert.Equal(t, tc.wake, p.wake)
			status := conclude(f, p, nil, f.cluster).Status
			var available metav1.Condition
			for _, c := range status.Conditions {
				if c.Type == clusterv1.ManagedClusterConditionAvailable {
					available = c
				}
			}
			if !tc.silent {
				assert.Equal(t, metav1.ConditionTrue, available.Status)
				return
			}
			assert.Equal(t, metav1.ConditionUnknown, available.Status)
			assert.Equal(t, "ManagedClusterLeaseUpdateStopped", available.Reason)
			assert.Equal(t, "Registration agent stopped updating its lease.", available.Message)
		})
	}
}

// Shows: registration/cluster-silent
func TestAddOnsOfASilentClusterAreMarked(t *testing.T) {
	since := noon().Add(-time.Hour)
	addon := func(conditions ...metav1.Condition) *addonv1beta1.ManagedClusterAddOn {
		a := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "c1"}}
		a.Status.Conditions = conditions
		return a
	}
	unknown := condition("Available", metav1.ConditionUnknown, reasonSilent, since)
	unknown.Message = messageSilent
	tests := map[string]struct {
		cluster metav1.ConditionStatus
		addon   *addonv1beta1.ManagedClusterAddOn
		marked  bool
		wake    time.Time
	}{
		"none while the cluster answers":         {cluster: metav1.ConditionTrue, addon: addon()},
		"none while only the API server is down": {cluster: metav1.ConditionFalse, addon: addon()},
		"one that said nothing yet":              {cluster: metav1.ConditionUnknown, addon: addon(), marked: true},
		"one that said something before the silence": {
			cluster: metav1.ConditionUnknown, marked: true,
			addon: addon(condition("Available", metav1.ConditionTrue, "x", since.Add(-time.Minute))),
		},
		"not one that is marked already": {cluster: metav1.ConditionUnknown, addon: addon(unknown)},
		"not at once one whose agent wrote since": {
			cluster: metav1.ConditionUnknown, wake: noon().Add(20 * time.Second),
			addon: addon(condition("Available", metav1.ConditionTrue, "x", noon().Add(-10*time.Second))),
		},
		"one whose agent wrote since, but long ago": {
			cluster: metav1.ConditionUnknown, marked: true,
			addon: addon(condition("Available", metav1.ConditionTrue, "x", noon().Add(-30*time.Second))),
		},
		"not at once one whose agent lives in the future": {
			cluster: metav1.ConditionUnknown, wake: noon().Add(30 * time.Second),
			addon: addon(condition("Available", metav1.ConditionTrue, "x", noon().Add(24*time.Hour))),
		},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			c := condition(clusterv1.ManagedClusterConditionAvailable, tc.cluster, reasonSilent, since)
			c.Message = messageSilent
			f.cluster.Status.Conditions = []metav1.Condition{c}
			f.addons = []*addonv1beta1.ManagedClusterAddOn{tc.addon}
			var p plan
			unknownAddOns := decideUnknownAddOns(f, &p)
			assert.Equal(t, tc.wake, p.wake)
			if !tc.marked {
				assert.Empty(t, unknownAddOns)
				return
			}
			require.Len(t, unknownAddOns, 1)
			got := unknownAddOns[0].after.Status.Conditions[0]
			assert.Equal(t, metav1.ConditionUnknown, got.Status)
			assert.Equal(t, reasonSilent, got.Reason)
			assert.Equal(t, messageSilent, got.Message)
		})
	}
}

// Shows: registration/feature-labels
func TestLabelsMirrorTheHealthOfAddOns(t *testing.T) {
	addon := func(name string, status metav1.ConditionStatus) *addonv1beta1.ManagedClusterAddOn {
		a := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if status != "" {
			a.Status.Conditions = []metav1.Condition{condition("Available", status, "x", noon())}
		}
		return a
	}
	going := addon("going", metav1.ConditionTrue)
	going.DeletionTimestamp = deletedAt()
	long := addon("an-add-on-whose-name-is-so-long-that-it-does-not-fit-into-a-label-key", metav1.ConditionTrue)
	all := []*addonv1beta1.ManagedClusterAddOn{
		addon("yes", metav1.ConditionTrue), addon("no", metav1.ConditionFalse), addon("lost", metav1.ConditionUnknown),
		addon("new", ""), going, long,
	}
	cluster := settledFacts().cluster
	cluster.Labels = map[string]string{"mine": "1", featurePrefix + "going": "available", featurePrefix + "gone": "available"}
	assert.True(t, mirrorAddons(cluster, all, noon()))
	assert.Equal(t, map[string]string{
		"mine": "1", featurePrefix + "yes": "available", featurePrefix + "no": "unhealthy",
		featurePrefix + "lost": "unreachable", featurePrefix + "new": "unreachable",
	}, cluster.Labels)
	assert.False(t, mirrorAddons(cluster, all, noon()), "the second time nothing changes")
	decode.Mark(all[0], "a time is wrong")
	decode.Mark(all[3], "likewise")
	cluster.Labels[featurePrefix+"new"] = "available"
	assert.False(t, mirrorAddons(cluster, all, noon()), "what cannot be decoded keeps its label")

	cluster.Status.Conditions = nil
	assert.False(t, mirrorAddons(cluster, nil, noon()), "a cluster whose health nobody knows is left alone")
}

// Shows: registration/feature-labels
func TestTheLabelOfANewAddOnWaitsForItsAgent(t *testing.T) {
	install := func(a *addonv1beta1.ManagedClusterAddOn) {
		a.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterManagementAddOn", Name: a.Name}}
	}
	for sentence, tc := range map[string]struct {
		change func(*facts, *addonv1beta1.ManagedClusterAddOn)
		want   string
		waits  bool
		until  time.Time
	}{
		"it has not reported": {change: func(*facts, *addonv1beta1.ManagedClusterAddOn) {}, waits: true},
		"it reports that nothing is known": {
			change: func(_ *facts, a *addonv1beta1.ManagedClusterAddOn) {
				a.Status.Conditions = []metav1.Condition{condition("Available", metav1.ConditionUnknown, "x", noon())}
			},
			waits: true,
		},
		"it is well": {
			change: func(_ *facts, a *addonv1beta1.ManagedClusterAddOn) {
				a.Status.Conditions = []metav1.Condition{condition("Available", metav1.ConditionTrue, "x", noon())}
			},
			want: "available",
		},
		"it is not well": {
			change: func(_ *facts, a *addonv1beta1.ManagedClusterAddOn) {
				a.Status.Conditions = []metav1.Condition{condition("Available", metav1.ConditionFalse, "x", noon())}
			},
			want: "unhealthy",
		},
		"the time is over": {
			change: func(f *facts, _ *addonv1beta1.ManagedClusterAddOn) { f.now = f.now.Add(50 * time.Second) },
			want:   "unreachable",
		},
		"the cluster is not well": {
			change: func(f *facts, _ *addonv1beta1.ManagedClusterAddOn) {
				f.cluster.Status.Conditions = []metav1.Condition{condition("ManagedClusterConditionAvailable",
					metav1.ConditionFalse, "x", noon())}
			},
			want: "unreachable",
		},
		"the label is there": {
			change: func(f *facts, _ *addonv1beta1.ManagedClusterAddOn) {
				f.cluster.Labels[featurePrefix+"a"] = "available"
			},
			want: "unreachable",
		},
		"it is being deleted": {
			change: func(_ *facts, a *addonv1beta1.ManagedClusterAddOn) { a.DeletionTimestamp = deletedAt() },
		},
		"the time of another add-on is over": {
			change: func(f *facts, a *addonv1beta1.ManagedClusterAddOn) {
				older := a.DeepCopy()
				older.Name, older.CreationTimestamp = "older", metav1.NewTime(f.now.Add(-labelPatience))
				f.addons = append(f.addons, older)
			},
			want: "unreachable", waits: true,
		},
		"it was installed, and no manager was there yet": {
			change: func(f *facts, a *addonv1beta1.ManagedClusterAddOn) {
				install(a)
				f.now = a.CreationTimestamp.Add(installPatience - time.Second)
			},
			waits: true, until: noon().Add(-10*time.Second + installPatience),
		},
		"it was installed, and no manager came": {
			change: func(f *facts, a *addonv1beta1.ManagedClusterAddOn) {
				install(a)
				f.now = a.CreationTimestamp.Add(installPatience)
			},
			want: "unreachable",
		},
		"it was installed, and its manager was there a moment ago": {
			change: func(f *facts, a *addonv1beta1.ManagedClusterAddOn) {
				install(a)
				f.now = noon().Add(5*time.Minute + labelPatience/2)
				a.Status.Conditions = []metav1.Condition{
					condition("Progressing", metav1.ConditionTrue, "x", f.now),
					condition("ManifestApplied", metav1.ConditionTrue, "x", noon().Add(5*time.Minute)),
				}
			},
			waits: true, until: noon().Add(5*time.Minute + labelPatience),
		},
		"it was installed, and its agent is silent since its manager was there": {
			change: func(f *facts, a *addonv1beta1.ManagedClusterAddOn) {
				install(a)
				f.now = noon().Add(5*time.Minute + labelPatience)
				a.Status.Conditions = []metav1.Condition{
					condition("ManifestApplied", metav1.ConditionTrue, "x", noon().Add(5*time.Minute)),
				}
			},
			want: "unreachable",
		},
		"it was installed, and the clock of its manager is a day ahead": {
			change: func(f *facts, a *addonv1beta1.ManagedClusterAddOn) {
				install(a)
				f.now = a.CreationTimestamp.Add(installPatience)
				a.Status.Conditions = []metav1.Condition{
					condition("ManifestApplied", metav1.ConditionTrue, "x", noon().Add(24*time.Hour)),
				}
			},
			want: "unreachable",
		},
		"another add-on is labelled already": {
			change: func(f *facts, a *addonv1beta1.ManagedClusterAddOn) {
				older := a.DeepCopy()
				older.Name, older.CreationTimestamp = "older", metav1.NewTime(f.now.Add(-labelPatience))
				f.cluster.Labels[featurePrefix+"older"] = "unreachable"
				f.addons = append(f.addons, older)
			},
			waits: true,
		},
		"another agent has reported": {
			change: func(f *facts, a *addonv1beta1.ManagedClusterAddOn) {
				well := a.DeepCopy()
				well.Name = "well"
				well.Status.Conditions = []metav1.Condition{condition("Available", metav1.ConditionTrue, "x", noon())}
				f.addons = append(f.addons, well)
			},
			waits: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			created := noon().Add(-10 * time.Second)
			addon := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
				Name: "a", Namespace: "c1", CreationTimestamp: metav1.NewTime(created),
			}}
			f.addons = []*addonv1beta1.ManagedClusterAddOn{addon}
			tc.change(&f, addon)
			wanted := wantedCluster(f)
			if wanted == nil {
				wanted = f.cluster
			}
			assert.Equal(t, tc.want, wanted.Labels[featurePrefix+"a"])
			if tc.waits {
				until := created.Add(labelPatience)
				if !tc.until.IsZero() {
					until = tc.until
				}
				assert.Equal(t, until, labelsAwaited(f))
				assert.False(t, decide(f).wake.After(until))
			} else {
				assert.Zero(t, labelsAwaited(f))
			}
		})
	}
}

// Shows: registration/feature-labels
func TestWhenLabelsAreWritten(t *testing.T) {
	addon := func(name string, status metav1.ConditionStatus) *addonv1beta1.ManagedClusterAddOn {
		a := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "c1"}}
		a.Status.Conditions = []metav1.Condition{condition("Available", status, "x", noon())}
		return a
	}
	labels := func(p plan) map[string]string {
		var all map[string]string
		if p.cluster == nil {
			return all
		}
		for key, value := range p.cluster.Labels {
			if strings.HasPrefix(key, featurePrefix) {
				if all == nil {
					all = map[string]string{}
				}
				all[strings.TrimPrefix(key, featurePrefix)] = value
			}
		}
		return all
	}
	for sentence, tc := range map[string]struct {
		change func(*facts)
		want   map[string]string
	}{
		"there is no cluster":                  {func(f *facts) { f.cluster = nil }, nil},
		"the health of the cluster is unknown": {func(f *facts) { f.cluster.Status.Conditions = nil }, nil},
		"the cluster is being deleted":         {func(f *facts) { f.cluster.DeletionTimestamp = deletedAt() }, nil},
		"all changes are one write":            {func(*facts) {}, map[string]string{"a": "available", "b": "unhealthy"}},
		"nothing changed": {func(f *facts) {
			f.cluster.Labels[featurePrefix+"a"], f.cluster.Labels[featurePrefix+"b"] = "available", "unhealthy"
		}, nil},
		"one changed, and another one is gone": {func(f *facts) {
			f.cluster.Labels[featurePrefix+"a"], f.cluster.Labels[featurePrefix+"b"] = "unreachable", "unhealthy"
			f.cluster.Labels[featurePrefix+"gone"] = "available"
		}, map[string]string{"a": "available", "b": "unhealthy"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			if f.cluster.Labels == nil {
				f.cluster.Labels = map[string]string{}
			}
			f.addons = []*addonv1beta1.ManagedClusterAddOn{addon("a", metav1.ConditionTrue), addon("b", metav1.ConditionFalse)}
			tc.change(&f)
			p := decide(f)
			assert.Equal(t, tc.want, labels(p))
		})
	}
}

// Shows: registration/cluster-silent
func TestWhoseAddOnsAreMarked(t *testing.T) {
	for sentence, tc := range map[string]struct {
		change func(*facts)
		want   int
	}{
		"the cluster is Unknown":           {func(*facts) {}, 1},
		"the cluster is available":         {func(f *facts) { f.cluster.Status.Conditions[0].Status = metav1.ConditionTrue }, 0},
		"the cluster was denied":           {func(f *facts) { f.cluster.Spec.HubAcceptsClient = false }, 1},
		"the cluster was never accepted":   {func(f *facts) { f.cluster.Spec.HubAcceptsClient, f.cluster.Annotations = false, nil }, 0},
		"the cluster is gone":              {func(f *facts) { f.cluster = nil }, 0},
		"the cluster has no add-ons":       {func(f *facts) { f.addons = nil }, 0},
		"its add-ons are marked already":   {func(f *facts) { mark(f.addons[0]) }, 0},
		"one is marked, and another isn't": {func(f *facts) { mark(f.addons[0]); f.addons = append(f.addons, unmarked("b")) }, 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			f := settledFacts()
			c := condition(clusterv1.ManagedClusterConditionAvailable, metav1.ConditionUnknown, reasonSilent, noon().Add(-time.Hour))
			c.Message = messageSilent
			accepted := condition(clusterv1.ManagedClusterConditionHubAccepted, metav1.ConditionTrue, "x", noon())
			f.cluster.Status.Conditions = []metav1.Condition{c, accepted}
			f.addons = []*addonv1beta1.ManagedClusterAddOn{unmarked("a")}
			tc.change(&f)
			if f.cluster != nil && !f.cluster.Spec.HubAcceptsClient && f.cluster.Annotations == nil {
				f.cluster.Status.Conditions = f.cluster.Status.Conditions[:1]
			}
			assert.Len(t, decide(f).unknownAddOns, tc.want)
		})
	}
}

func unmarked(name string) *addonv1beta1.ManagedClusterAddOn {
	return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "c1"}}
}

func mark(a *addonv1beta1.ManagedClusterAddOn) {
	c := condition("Available", metav1.ConditionUnknown, reasonSilent, noon())
	c.Message = messageSilent
	a.Status.Conditions = []metav1.Condition{c}
}

// waiting is a queue of which only what is added is known.
type waiting struct {
	queue
	now, soon []ctrlreconcile.Request
}

func (w *waiting) Add(r ctrlreconcile.Request)                       { w.now = append(w.now, r) }
func (w *waiting) AddAfter(r ctrlreconcile.Request, _ time.Duration) { w.soon = append(w.soon, r) }

func TestAddOnsWakeTheirClusterOnceForAMoment(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1.Install(scheme))
	there := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "there"}}
	going := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
		Name: "going", DeletionTimestamp: deletedAt(), Finalizers: []string{"example.com/f"},
	}}
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(there, going).Build()}
	of := func(namespace string) client.Object {
		return &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
	}
	for namespace, soon := range map[string]bool{"there": true, "going": false, "gone": false} {
		q := &waiting{}
		h := r.ofAddOn()
		h.Create(t.Context(), event.CreateEvent{Object: of(namespace)}, q)
		h.Update(t.Context(), event.UpdateEvent{ObjectOld: of(namespace), ObjectNew: of(namespace)}, q)
		h.Delete(t.Context(), event.DeleteEvent{Object: of(namespace)}, q)
		want := []ctrlreconcile.Request{
			{NamespacedName: types.NamespacedName{Name: namespace}}, {NamespacedName: types.NamespacedName{Name: namespace}},
			{NamespacedName: types.NamespacedName{Name: namespace}},
		}
		if soon {
			assert.Equal(t, want, q.soon, "a cluster whose labels may wait")
			assert.Empty(t, q.now)
			continue
		}
		assert.Equal(t, want, q.now, "a cluster that waits for its add-ons to go")
		assert.Empty(t, q.soon)
	}
}

func TestHealthIsReadWithoutAConversion(t *testing.T) {
	a := unmarked("a")
	assert.Empty(t, health(a))
	mark(a)
	assert.Equal(t, metav1.ConditionUnknown, health(a))
	assert.Equal(t, metav1.ConditionUnknown, health(addonapi.AddOnToAlpha(a)))
	assert.Empty(t, health(&clusterv1.ManagedCluster{}))
}

func TestARenewalWakesNobody(t *testing.T) {
	at := func(seconds int) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(noon().Add(time.Duration(seconds) * time.Second))
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.LabelClusterName: "c1"}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
		}
	}
	blank, unlabelled := at(0), at(1)
	blank.Spec.RenewTime, unlabelled.Labels = nil, nil
	tests := map[string]struct {
		before, after *coordinationv1.Lease
		want          bool
	}{
		"a renewal":                    {at(0), at(60), false},
		"a renewal that turns back":    {at(60), at(0), true},
		"a renewal that was wiped out": {at(0), blank, true},
		"the first renewal":            {blank, at(0), true},
		"a label that was taken off":   {at(0), unlabelled, true},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			grace := func() time.Duration { t.Error("nobody has to look up the cluster"); return 0 }
			assert.Equal(t, tc.want, leaseMatters(tc.before, tc.after, grace))
		})
	}
}
