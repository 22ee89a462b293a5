package configure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// each is configure where cluster a is well or not.
func (r *race) each(now time.Time, well bool) {
	c := &Configurer{Admission: r.r.Admission}
	progress := func(well bool) func(references []addonv1beta1.ConfigReference) addon.Progress {
		return func(references []addonv1beta1.ConfigReference) addon.Progress {
			work := fixture.Work("w", 3, references)
			if !well {
				work.Status.Conditions[1].Status = metav1.ConditionFalse
			}
			return addon.Progress{Now: now, Works: []*workv1.ManifestWork{work}}
		}
	}
	r.a = c.Rehearse(r.cma, r.a, r.states, progress(well))
	r.b = c.Rehearse(r.cma, r.b, r.states, progress(true))
}

// passes lets passes go by from an instant after noon on, every half a minute.
func (r *race) passes(after *time.Duration, n int, well bool) {
	for range n {
		r.plan(fixture.Noon().Add(*after))
		r.each(fixture.Noon().Add(*after), well)
		*after += 30 * time.Second
	}
}

func (r *race) hash(addOn *addonv1beta1.ManagedClusterAddOn, config addonv1beta1.AddOnConfig) string {
	return addonconfig.HashOf(config, addonconfig.AddOnReferences(addOn.Status.ConfigReferences))
}

// Cluster a, the first one, runs with a configuration of its own since long. The rollout has a new content of that kind,
// and a user takes the own one off, so that a gets the new content as every other cluster. It breaks a. One cluster moves
// at a time.
//
// Shows: hub/rollout-soaked-other
func TestAContentThatReplacesAnOwnOneIsNotDoneAtOnce(t *testing.T) {
	tmpl, rolled, x := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x")
	for sentence, own := range map[string][]addonv1beta1.AddOnConfig{
		"control: it has none of its own": nil,
		"it had one of its own":           {x},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newRace(tmpl, rolled)
			r.states[tmpl] = addonconfig.State{Hash: "new"}
			r.a.Spec.Configs = own
			after := time.Duration(0)
			r.passes(&after, 120, true)
			require.Equal(t, "rolled", r.hash(r.b, rolled))
			r.states[rolled] = addonconfig.State{Hash: "r2"}
			r.a.Spec.Configs = nil
			for end := after + 8*time.Minute; after < end; after += 30 * time.Second {
				r.plan(fixture.Noon().Add(after))
				r.each(fixture.Noon().Add(after), r.hash(r.a, rolled) != "r2")
				c := meta.FindStatusCondition(r.a.Status.Conditions, names.ConditionSoaked)
				if !assert.Equal(t, "rolled", r.hash(r.b, rolled), "b gets r2, which a has not applied yet; Soaked of a: %v", c) {
					return
				}
			}
			require.Equal(t, "r2", r.hash(r.a, rolled))
		})
	}
}

// A cluster waits for its first turn in the rollout. A user who may write its add-on names a ConfigMap there, of which
// no hash is known.
//
// Shows: hub/rollout-unknown-hash
func TestAnOwnConfigurationWithoutAHashBringsNoAddOnPastTheRollout(t *testing.T) {
	rolled, unread := fixture.DeploymentConfig("rolled"), fixture.ConfigMap("c")
	for sentence, own := range map[string][]addonv1beta1.AddOnConfig{
		"control: it names none": nil,
		"it names one":           {unread},
	} {
		t.Run(sentence, func(t *testing.T) {
			cma := fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive},
				fixture.Placement("low", rolled)))
			c, _, clock := configuring(t, cma, &addonv1beta1.AddOnDeploymentConfig{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "rolled", UID: "rolled"},
			}, func(metav1.Object, []addonv1beta1.ConfigReference) addonconfig.Admission {
				return addonconfig.Admission{Reason: "waits until 1 of 3000 clusters is done"}
			})
			addOn := fixture.AddOn("c1")
			addOn.Status = addonv1beta1.ManagedClusterAddOnStatus{}
			addOn.Spec.Configs = own
			for range 2 {
				result, err := c.Configure(t.Context(), addOn)
				require.NoError(t, err)
				assert.True(t, addon.IsNotReady(result.Err), "nothing is deployed before its turn; it is rendered from %v", result.Choice.Configs)
				addOn = addOn.DeepCopy()
				result.Record(addOn, addon.Progress{Now: clock.Now()})
			}
			// The same for the program of its author, which follows.
			f := followed{cma: cma, addOn: addOn}
			_, wait := f.held()
			assert.NotEmpty(t, wait, "nothing is deployed before its turn")
		})
	}
}

// A cluster waits for its turn. A user names a ConfigMap in the spec of its add-on and takes that back.
//
// Shows: hub/rollout-unknown-hash
func TestAnOwnConfigurationThatIsTakenBackIsNoneOfTheCluster(t *testing.T) {
	tmpl := fixture.Template("t")
	r := newRace(tmpl)
	r.states[tmpl] = addonconfig.State{Hash: "new"}
	r.states[fixture.ConfigMap("c")] = addonconfig.State{Unread: "the hub manager does not read it"}
	after := time.Duration(0)
	pass := func(n int) {
		for range n {
			r.passes(&after, 1, r.hash(r.a, tmpl) != "bad")
		}
	}
	pass(120)
	r.states[tmpl] = addonconfig.State{Hash: "bad"}
	pass(2)
	require.Equal(t, "bad", r.hash(r.a, tmpl))
	had := r.b.Status
	require.Equal(t, "new", r.hash(r.b, tmpl), "b waits for a")
	require.Equal(t, "Completed", meta.FindStatusCondition(had.Conditions, "Progressing").Reason)
	r.b.Spec.Configs = []addonv1beta1.AddOnConfig{fixture.ConfigMap("c")}
	pass(1)
	r.b.Spec.Configs = nil
	pass(2)
	require.Equal(t, "new", r.hash(r.b, tmpl), "b waits for a")
	assert.Equal(t, had.ConfigReferences, r.b.Status.ConfigReferences, "until its turn it keeps what it has")
	assert.Equal(t, "Completed", meta.FindStatusCondition(r.b.Status.Conditions, "Progressing").Reason)
}

// Cluster a does not become well with a configuration of its own, for an hour. The rollout has another content of that
// kind, and a user takes the own one off. The cluster has ten minutes for what the rollout gives it now.
//
// Shows: hub/rollout-own-turns
func TestAContentThatReplacesAnOwnOneHasItsDeadline(t *testing.T) {
	tmpl, rolled, x := fixture.Template("t"), fixture.DeploymentConfig("rolled"), fixture.DeploymentConfig("x")
	r := newRace(tmpl, rolled)
	r.states[tmpl] = addonconfig.State{Hash: "new"}
	r.a.Spec.Configs = []addonv1beta1.AddOnConfig{x}
	after := time.Duration(0)
	r.passes(&after, 120, false)
	require.Equal(t, "rolled", r.hash(r.b, rolled))
	r.states[rolled] = addonconfig.State{Hash: "r2"}
	r.a.Spec.Configs = nil
	for range 3 {
		r.plan(fixture.Noon().Add(after))
		r.each(fixture.Noon().Add(after), false)
		after += time.Second
	}
	require.Equal(t, "r2", r.hash(r.a, rolled))
	since := meta.FindStatusCondition(r.a.Status.Conditions, "Progressing").LastTransitionTime.Time
	assert.WithinDuration(t, fixture.Noon().Add(time.Hour), since, time.Minute, "when the rollout gave r2")
	assert.Equal(t, "rolled", r.hash(r.b, rolled), "one cluster moves at a time, and a is on its way for seconds")
}

// Cluster a comes first in a rollout, and the spec of its add-on names a ConfigMap of which no hash is known. Its manager
// reports the hash as soon as the status names it.
//
// Shows: hub/rollout-unknown-hash
func TestAnOwnConfigurationWithoutAHashHasItsTurn(t *testing.T) {
	tmpl, own := fixture.Template("t"), fixture.ConfigMap("c")
	r := newRace(tmpl)
	r.states[own] = addonconfig.State{Unread: "the hub manager does not read it"}
	r.a.Spec.Configs = []addonv1beta1.AddOnConfig{own}
	r.states[tmpl] = addonconfig.State{Hash: "new"}
	for after := time.Duration(0); after < time.Hour; after += 30 * time.Second {
		r.plan(fixture.Noon().Add(after))
		r.each(fixture.Noon().Add(after), true)
		if references := r.a.Status.ConfigReferences; after == 30*time.Minute {
			assert.Equal(t, "new", r.hash(r.a, tmpl))
			assert.Equal(t, "new", r.hash(r.b, tmpl), "b does not wait for what the spec of a names")
			require.Len(t, references, 2)
			references[0].DesiredConfig.SpecHash = "reported"
		}
	}
	assert.Equal(t, "reported", r.hash(r.a, own))
	assert.Equal(t, "Completed", meta.FindStatusCondition(r.a.Status.Conditions, "Progressing").Reason)
}

// A cluster waits for its turn in a rollout of the template. The rollout also gives ConfigMap r, which the hub manager
// does not read. A user names ConfigMap c in the spec of the add-on, and its manager reports the hash.
//
// Shows: hub/rollout-unknown-hash
func TestAnOwnConfigurationReplacesThoseOfItsKind(t *testing.T) {
	tmpl, r, c := fixture.Template("t"), fixture.ConfigMap("r"), fixture.ConfigMap("c")
	cma := fixture.NewCMA(nil, fixture.ByStrategy(clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive},
		fixture.Placement("p", tmpl, r)))
	cma.Status.InstallProgressions = []addonv1beta1.InstallProgression{{
		PlacementRef: cma.Spec.InstallStrategy.Placements[0].PlacementRef,
		ConfigReferences: []addonv1beta1.InstallConfigReference{{
			ConfigGroupResource: r.ConfigGroupResource, DesiredConfig: fixture.Hashed(r, "r"),
		}},
	}}
	addOn := fixture.AddOn("c1", fixture.Has(tmpl, "old"), fixture.Has(r, "r"))
	addOn.Spec.Configs = []addonv1beta1.AddOnConfig{c}
	unread := addonconfig.State{Unread: "the hub manager does not read it"}
	f := facts{
		addOn: addOn, cma: cma, states: addonconfig.States{tmpl: {Hash: "new"}, r: unread, c: unread}, planned: true,
		admission: addonconfig.Admission{Reason: "waits until another cluster is done"},
	}
	decided := decide(f)
	f.addOn = addOn.DeepCopy()
	f.addOn.Status.ConfigReferences = copied(decided.references)
	for i := range f.addOn.Status.ConfigReferences {
		if desired := f.addOn.Status.ConfigReferences[i].DesiredConfig; desired.Name == "c" {
			desired.SpecHash = "c"
		}
	}
	var maps []string
	for _, reference := range decide(f).references {
		if reference.Resource == "configmaps" {
			maps = append(maps, reference.DesiredConfig.Name)
		}
	}
	assert.Len(t, maps, 1, "for each kind of configuration the highest source replaces all lower ones")
}
