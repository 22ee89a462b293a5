package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/policies"
)

// ruled is a race of three clusters under a policy, whose status every pass writes.
type ruled struct {
	*three
	tmpl   addonv1beta1.AddOnConfig
	policy *policies.AddOnPolicy
	// selected are the clusters of the placement.
	selected []string
	// breaks are the hashes that break a cluster.
	breaks map[string]string
}

func newRuled(spec policies.AddOnPolicySpec) *ruled {
	r := &ruled{tmpl: fixture.Template("t"), selected: []string{"a", "b", "c"}, breaks: map[string]string{}}
	r.three = newThree(r.tmpl)
	r.policy = &policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: "hello"}, Spec: spec}
	return r
}

func (r *ruled) rolls(hash string) { r.states[r.tmpl] = addonconfig.State{Hash: hash} }

// passes do some passes of all add-ons that are there (nil is one that is not).
func (r *ruled) passes(n int) {
	for range n {
		now := fixture.Noon().Add(r.after)
		r.after += 30 * time.Second
		g := gate.New("hello", r.policy, nil)
		d := decidedLongAgo(r.selected...)
		w := rollout.World{
			Now: now, CMA: r.cma, Placements: []*fleet.Decisions{d}, States: r.states, Gate: g, Served: map[string]bool{},
		}
		for cluster, addOn := range map[string]*addonv1beta1.ManagedClusterAddOn{"a": r.a, "b": r.b, "c": r.c} {
			if addOn != nil {
				w.AddOns = append(w.AddOns, addOn)
			} else {
				w.Served[cluster] = true
			}
		}
		said := r.r.Rehearse(w)
		c := &Configurer{Admission: r.r.Admission}
		one := func(addOn *addonv1beta1.ManagedClusterAddOn) *addonv1beta1.ManagedClusterAddOn {
			if addOn == nil {
				return nil
			}
			owner := fleet.OwnerOf(addOn.Namespace, []*fleet.Decisions{d}, now)
			f := facts{addOn: addOn, cma: r.cma, placement: owner.Index, doubts: owner.Doubts, states: r.states, rules: g}
			if how, is := f.allReturn(); is && !f.unselected() {
				f.returns(how)
			}
			if f.planned, f.admission = c.admission(f); f.planned {
				if how, is := f.failedReturns(); is {
					f.returns(how)
				}
			}
			decided, after := decide(f), addOn.DeepCopy()
			if decided.undecided {
				return after
			}
			work := fixture.Work("w", 3, decided.references)
			for _, reference := range decided.references {
				if bad := r.breaks[addOn.Namespace]; bad != "" && reference.DesiredConfig.SpecHash == bad {
					work.Status.Conditions[1].Status = metav1.ConditionFalse
				}
			}
			record(f, decided, after, addon.Progress{Works: []*workv1.ManifestWork{work}, Now: now})
			return after
		}
		r.a, r.b, r.c = one(r.a), one(r.b), one(r.c)
		if said.Policy != nil {
			r.policy = said.Policy
		}
	}
}

func (r *ruled) restarts() { r.r = &rollout.Reconciler{} }

// everBad does some passes and returns whether a cluster ever was given the bad content in them.
func (r *ruled) everBad(of func() *addonv1beta1.ManagedClusterAddOn, passes int) bool {
	for range passes {
		r.passes(1)
		if r.hash(of(), r.tmpl) == "bad" {
			return true
		}
	}
	return false
}

func (r *ruled) ofA() *addonv1beta1.ManagedClusterAddOn { return r.a }
func (r *ruled) ofB() *addonv1beta1.ManagedClusterAddOn { return r.b }

// undoes rolls v1 out, and then "bad", which breaks a, so that a returns to v1 and the rollout stops.
func (r *ruled) undoes(t *testing.T) {
	t.Helper()
	r.rolls("v1")
	r.passes(120)
	require.Equal(t, "v1", r.hash(r.c, r.tmpl))
	require.NotEmpty(t, r.policy.Status.Placements[0].Completed)
	r.rolls("bad")
	r.breaks["a"] = "bad"
	r.passes(60)
	require.Equal(t, "v1", r.hash(r.a, r.tmpl), "it returned")
	noted := meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionRolloutFailed)
	require.NotNil(t, noted)
	require.Equal(t, "Undone", noted.Reason)
	require.Equal(t, "v1", r.hash(r.b, r.tmpl), "and the rollout stopped")
	require.Len(t, r.policy.Status.Undone, 1)
}

// What was undone is not given to any cluster again, until retry has it.
func TestWhatWasUndoneIsNotGivenAgain(t *testing.T) {
	r := newRuled(undoSpec())
	r.undoes(t)
	assert.False(t, r.everBad(r.ofA, 60))
	assert.Equal(t, "v1", r.hash(r.b, r.tmpl))
	r.restarts()
	assert.False(t, r.everBad(r.ofA, 60))
	assert.Equal(t, "v1", r.hash(r.b, r.tmpl))
}

// The specs go back to v1 and then to the undone content again (contents that come back).
func TestUndoneContentThatComesBackIsNotGivenAgain(t *testing.T) {
	r := newRuled(undoSpec())
	r.undoes(t)
	r.rolls("v1")
	r.passes(60)
	require.Len(t, r.policy.Status.Undone, 1, "the policy still says that it is undone")
	r.rolls("bad")
	assert.False(t, r.everBad(r.ofA, 20), "a gets again what it failed with, and nobody said retry")
}

// The cluster leaves its placement for some time, and its add-on stays there (such as while removals are held).
func TestAClusterThatLeavesAndReturnsDoesNotGetWhatWasUndone(t *testing.T) {
	for sentence, restarts := range map[string]bool{"control: goes on": false, "restart": true} {
		t.Run(sentence, func(t *testing.T) {
			r := newRuled(undoSpec())
			for _, addOn := range []*addonv1beta1.ManagedClusterAddOn{r.a, r.b, r.c} {
				metav1.SetMetaDataLabel(&addOn.ObjectMeta, names.LabelInstalledBy, names.InstalledByPlacement)
			}
			r.undoes(t)
			r.selected = []string{"b", "c"}
			r.passes(1)
			if restarts {
				r.restarts()
			}
			r.passes(3)
			r.selected = []string{"a", "b", "c"}
			assert.False(t, r.everBad(r.ofA, 20), "a gets again what it failed with")
		})
	}
}

// The add-on is deleted and created again while its content is undone.
func TestAnUndoneAddOnThatIsCreatedAgainStartsNothing(t *testing.T) {
	r := newRuled(undoSpec())
	r.a.UID = "first"
	fresh := r.a.DeepCopy()
	fresh.UID = "again"
	r.undoes(t)
	r.a = nil
	r.passes(2)
	r.a = fresh
	assert.False(t, r.everBad(r.ofA, 20), "a gets again what it failed with")
}

// The rollout had stopped by the failure of a. As without the undo, others must not get the content because the add-on
// that failed was deleted (or created again).
func TestARolloutThatStoppedByAnUndoneClusterStaysStoppedWhenItsAddOnGoes(t *testing.T) {
	for sentence, spec := range map[string]policies.AddOnPolicySpec{"control: Stop": {}, "Undo": undoSpec()} {
		t.Run(sentence, func(t *testing.T) {
			r := newRuled(spec)
			r.a.UID = "first"
			if spec.OnFailure == nil {
				r.rolls("v1")
				r.passes(120)
				r.rolls("bad")
				r.breaks["a"] = "bad"
				r.passes(60)
				require.Equal(t, "v1", r.hash(r.b, r.tmpl))
			} else {
				r.undoes(t)
			}
			r.a = nil
			assert.False(t, r.everBad(r.ofB, 60), "b gets what made the rollout stop")
		})
	}
}

// The template is deleted and created again with the same content (as kubectl replace --force does).
func TestATemplateThatIsReplacedByItselfIsNotGivenToWhoReturnedFromIt(t *testing.T) {
	for sentence, spec := range map[string]policies.AddOnPolicySpec{
		"Undo":    undoSpec(),
		"UndoAll": {OnFailure: &policies.OnFailure{Action: policies.ActionUndoAll}},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newRuled(spec)
			r.rolls("v1")
			r.passes(120)
			r.rolls("bad")
			r.breaks["a"] = "bad"
			r.passes(120)
			require.Equal(t, "v1", r.hash(r.a, r.tmpl), "it returned")
			r.states[r.tmpl] = addonconfig.State{Missing: true}
			r.passes(2)
			r.rolls("bad")
			assert.False(t, r.everBad(r.ofA, 20), "a gets again what it failed with, and nobody said retry")
		})
	}
}
