package configure

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// passIn is a pass in which the decisions are others, also the owner, and a content with the hash "bad" breaks cluster
// a.
func (r *three) passIn(decisions func(now time.Time) *fleet.Decisions) {
	now := fixture.Noon().Add(r.after)
	r.after += 30 * time.Second
	d := []*fleet.Decisions{decisions(now)}
	r.r.Rehearse(rollout.World{Now: now, CMA: r.cma, Placements: d, States: r.states,
		AddOns: []*addonv1beta1.ManagedClusterAddOn{r.a, r.b, r.c}})
	c := &Configurer{Admission: r.r.Admission}
	one := func(addOn *addonv1beta1.ManagedClusterAddOn, breaks string) *addonv1beta1.ManagedClusterAddOn {
		owner := fleet.OwnerOf(addOn.Namespace, d, now)
		f := facts{addOn: addOn, cma: r.cma, placement: owner.Index, doubts: owner.Doubts, states: r.states}
		f.planned, f.admission = c.admission(f)
		decided, after := decide(f), addOn.DeepCopy()
		if decided.undecided {
			return after
		}
		work := fixture.Work("w", 3, decided.references)
		for _, reference := range decided.references {
			if breaks != "" && reference.DesiredConfig.SpecHash == breaks {
				work.Status.Conditions[1].Status = metav1.ConditionFalse
			}
		}
		record(f, decided, after, addon.Progress{Works: []*workv1.ManifestWork{work}, Now: now})
		return after
	}
	r.a, r.b, r.c = one(r.a, "bad"), one(r.b, ""), one(r.c, "")
}

// A cluster broke while it soaked, without a deadline, and two may move at a time. Its user names a configuration of a kind
// that the add-on does not support, or another one makes it hosted.
//
// Shows: hub/rollout-failures
func TestAnUnsupportedKindExcusesNoFailure(t *testing.T) {
	tmpl := fixture.Template("t")
	other := addonv1beta1.AddOnConfig{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "other", Resource: "others"},
		ConfigReferent:      addonv1beta1.ConfigReferent{Name: "o"},
	}
	for sentence, own := range map[string][]addonv1beta1.AddOnConfig{
		"control: none": nil, "of a kind that is not supported": {other}, "none, but an annotation names a hosting cluster": nil,
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			p := r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive
			p.ProgressDeadline, p.MaxConcurrency = "", intstr.FromInt32(1)
			r.states[other] = addonconfig.State{Hash: "o"}
			r.a.Status.SupportedConfigs = []addonv1beta1.ConfigGroupResource{tmpl.ConfigGroupResource}
			r.breaksWhileItSoaks(t, tmpl, 20)
			require.True(t, isFailed(r.a))
			p.MaxConcurrency = intstr.FromInt32(2)
			for n := range 3 {
				r.pass("bad")
				require.True(t, r.stays(t, tmpl, n))
			}
			r.a.Spec.Configs = own
			if strings.HasPrefix(sentence, "none, but") {
				r.a.Annotations = map[string]string{names.AnnotationHostingCluster: "host"}
			}
			r.staysFor(t, tmpl, 60, "bad")
			assert.True(t, isFailed(r.a))
		})
	}
}

// As TestAnUnsupportedKindExcusesNoFailure, for one pass.
//
// Shows: hub/rollout-failures
func TestAnUnsupportedKindThatComesAndGoesExcusesNoFailure(t *testing.T) {
	tmpl := fixture.Template("t")
	other := addonv1beta1.AddOnConfig{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "other", Resource: "others"},
		ConfigReferent:      addonv1beta1.ConfigReferent{Name: "o"},
	}
	for sentence, states := range map[string]addonconfig.State{"known": {Hash: "o"}, "unread": {Unread: "no"}, "missing": {Missing: true}} {
		for _, deadline := range []string{"", "2h"} {
			t.Run(sentence+" "+deadline, func(t *testing.T) {
				r := newThree(tmpl)
				p := r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive
				p.ProgressDeadline = deadline
				r.states[other] = states
				r.a.Status.SupportedConfigs = []addonv1beta1.ConfigGroupResource{tmpl.ConfigGroupResource}
				r.breaksWhileItSoaks(t, tmpl, 20)
				require.True(t, isFailed(r.a))
				p.MaxConcurrency = intstr.FromInt32(2)
				r.pass("bad")
				require.True(t, r.stays(t, tmpl, -1))
				r.a.Spec.Configs = []addonv1beta1.AddOnConfig{other}
				r.pass("bad")
				r.a.Spec.Configs = nil
				r.staysFor(t, tmpl, 60, "bad")
			})
		}
	}
}

// A cluster broke while it soaked, and its works stay broken, whatever configuration of a known hash its user names.
//
// Shows: hub/rollout-failures
func TestAKnownConfigurationExcusesNoFailure(t *testing.T) {
	tmpl, x := fixture.Template("t"), fixture.DeploymentConfig("x")
	for sentence, own := range map[string][]addonv1beta1.AddOnConfig{"control: none": nil, "a known one": {x}} {
		for deadline := range map[string]bool{"": true, "2h": true} {
			t.Run(sentence+" "+deadline, func(t *testing.T) {
				r := newThree(tmpl)
				p := r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive
				p.ProgressDeadline = deadline
				r.states[x] = addonconfig.State{Hash: "x"}
				r.breaksWhileItSoaks(t, tmpl, 20)
				require.True(t, isFailed(r.a))
				p.MaxConcurrency = intstr.FromInt32(2)
				for n := range 3 {
					r.pass("bad")
					require.True(t, r.stays(t, tmpl, n))
				}
				r.a.Spec.Configs = own
				r.staysFor(t, tmpl, 60, "bad")
			})
		}
	}
}

// A cluster soaks, its user names a configuration of an unknown hash, and its works break.
//
// Shows: hub/rollout-failed-noted
func TestTheConditionIsThereWhileTheRolloutStops(t *testing.T) {
	tmpl, unread := fixture.Template("t"), fixture.ConfigMap("c")
	r := newThree(tmpl)
	r.states[unread] = addonconfig.State{Unread: "the hub manager does not read it"}
	r.stops(t, tmpl, 40, func(n int) {
		switch {
		case n == 4:
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{unread}
			r.pass("bad")
		case n > 4:
			r.pass("bad")
		default:
			r.pass("")
		}
	})
	assert.True(t, isFailed(r.a), "the rollout stops because of a: %v", r.a.Status.Conditions)
}

// A cluster failed and the rollout stopped. Its user deletes the add-on, and it is created again.
//
// Shows: hub/rollout-failures
func TestAFailedAddOnThatIsCreatedAgainAdmitsNobody(t *testing.T) {
	tmpl := fixture.Template("t")
	for sentence, tc := range map[string]struct {
		gone, concurrency int
		deadline          string
	}{
		"created at once, one at a time": {0, 1, "10m"}, "gone for a pass, one at a time": {1, 1, "10m"},
		"created at once, two at a time": {0, 2, "10m"}, "gone for three passes, two at a time": {3, 2, "10m"},
		"gone for three passes, without a deadline": {3, 2, "None"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.a.UID = "first"
			fresh, strategy := r.a.DeepCopy(), r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive
			if strategy.ProgressDeadline = tc.deadline; tc.deadline == "None" {
				r.breaksWhileItSoaks(t, tmpl, 40)
			} else {
				r.breaks(t, tmpl)
			}
			require.True(t, isFailed(r.a))
			strategy.MaxConcurrency = intstr.FromInt(tc.concurrency)
			for n := range 3 {
				r.pass("bad")
				require.True(t, r.stays(t, tmpl, n))
			}
			for n := range tc.gone {
				r.passWithout(decidedLongAgo("a", "b", "c"))
				if !r.stays(t, tmpl, n) {
					return
				}
			}
			fresh.UID = "again"
			r.a = fresh
			r.staysFor(t, tmpl, 60, "bad")
		})
	}
}

// An add-on that failed is created again. Its condition and the plan agree.
//
// Shows: hub/rollout-failed-noted
func TestTheConditionSaysWhatThePlanCounts(t *testing.T) {
	tmpl := fixture.Template("t")
	r := newThree(tmpl)
	r.a.UID = "first"
	fresh := r.a.DeepCopy()
	r.breaks(t, tmpl)
	r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy.Progressive.MaxConcurrency = intstr.FromInt32(2)
	fresh.UID = "again"
	r.a = fresh
	r.pass("bad")
	assert.False(t, isFailed(r.a) && r.hash(r.b, tmpl) == "bad",
		"a counts as failed, and none is tolerated, and b is admitted in the same plan: %v", r.a.Status.Conditions)
}

// The strategy is All for a while, in which the hub manager starts again.
//
// Shows: hub/rollout-failed-noted
func TestAFailureOutlivesAStrategyThatCountsNone(t *testing.T) {
	tmpl, none := fixture.Template("t"), fixture.DeploymentConfig("none")
	for sentence, restarts := range map[string]bool{"control: the hub manager goes on": false, "it starts again": true} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			r.states[none] = addonconfig.State{Missing: true}
			fresh := r.c.DeepCopy()
			fresh.UID = "again"
			r.breaks(t, tmpl)
			require.True(t, isFailed(r.a))
			strategy := &r.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy
			was := *strategy.DeepCopy()
			*strategy = clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "10m"}}}
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{none}
			for range 10 {
				r.pass("bad")
			}
			if restarts {
				r.r = &rollout.Reconciler{}
			}
			*strategy = was
			r.pass("bad")
			r.c = fresh
			for range 60 {
				r.pass("bad")
			}
			assert.Empty(t, r.hash(r.c, tmpl), "a failed with it")
		})
	}
}

// A cluster failed, and its user names a configuration of an unknown hash. Another scheduler moves it from one page to the
// next, or its Placement is replaced, and meanwhile the hub manager starts again.
//
// Shows: hub/rollout-failed-noted
func TestADoubtAboutTheOwnerExcusesNoFailure(t *testing.T) {
	tmpl, unread := fixture.Template("t"), fixture.ConfigMap("c")
	for sentence, tc := range map[string]struct{ lost, restarts bool }{
		"control: between pages, the hub manager goes on": {}, "between pages, it starts again": {restarts: true},
		"control: no Placement, the hub manager goes on": {lost: true}, "no Placement, it starts again": {lost: true, restarts: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newThree(tmpl)
			for _, addOn := range []*addonv1beta1.ManagedClusterAddOn{r.a, r.b, r.c} {
				metav1.SetMetaDataLabel(&addOn.ObjectMeta, names.LabelInstalledBy, names.InstalledByPlacement)
			}
			r.states[unread] = addonconfig.State{Unread: "the hub manager does not read it"}
			r.breaks(t, tmpl)
			require.True(t, isFailed(r.a))
			r.a.Spec.Configs = []addonv1beta1.AddOnConfig{unread}
			all := pagesOfOthers("p", fixture.Noon().Add(-time.Hour), nil, []string{"a", "b"}, []string{"c"})
			whole := func(time.Time) *fleet.Decisions { return all }
			for range 5 {
				r.passIn(whole)
			}
			require.True(t, isFailed(r.a))
			at := fixture.Noon().Add(r.after)
			torn := pagesOfOthers("p", at, all, []string{"b"}, []string{"c"})
			if tc.lost {
				torn = fleet.NewDecisions(fleet.Seen{Key: types.NamespacedName{Namespace: "ns", Name: "p"}, Before: all}, at)
			}
			r.passIn(func(time.Time) *fleet.Decisions { return torn })
			assert.True(t, isFailed(r.a), "the rollout counts it still")
			if tc.restarts {
				r.r = &rollout.Reconciler{}
			}
			for n := range 60 {
				r.passIn(whole)
				if !r.stays(t, tmpl, n) {
					return
				}
			}
			assert.True(t, isFailed(r.a))
		})
	}
}
