package configure

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
	"github.com/spokelet/spokelet/internal/names"
)

// play is a play of people with three clusters, drawn from a seed. What breaks, breaks on cluster a.
type play struct {
	*three
	t            *testing.T
	tmpl, rolled addonv1beta1.AddOnConfig
	random       *rand.Rand
	// bad are the versions of the template that break, of as many as there are.
	bad      map[string]bool
	versions int
	// progressive is the strategy, which All replaces for a while.
	progressive *clusterv1alpha1.RolloutStrategy
	log         []string
}

func newPlay(t *testing.T, seed uint64) *play {
	t.Helper()
	p := &play{
		t: t, tmpl: fixture.Template("t"), rolled: fixture.DeploymentConfig("rolled"),
		random: rand.New(rand.NewPCG(seed, 0)), bad: map[string]bool{},
	}
	p.three = newThree(p.tmpl, p.rolled)
	p.after = 370 * time.Millisecond // An API server stores whole seconds.
	p.states[fixture.ConfigMap("c")] = addonconfig.State{Unread: "the hub manager does not read it"}
	p.states[fixture.DeploymentConfig("none")] = addonconfig.State{Missing: true}
	p.states[fixture.DeploymentConfig("x")] = addonconfig.State{Hash: "x"}
	p.states[p.tmpl] = addonconfig.State{Hash: "v0"}
	strategy := p.strategy().Progressive
	strategy.MaxConcurrency = intstr.FromInt(1 + p.random.IntN(2))
	switch p.random.IntN(4) {
	case 0:
		strategy.ProgressDeadline = ""
	case 1:
		strategy.MinSuccessTime = metav1.Duration{}
	}
	p.passes(60)
	return p
}

func (p *play) strategy() *clusterv1alpha1.RolloutStrategy {
	return &p.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy
}

// passes lets passes go by. An API server stores the statuses.
func (p *play) passes(number int) {
	for range number {
		breaks := ""
		for _, version := range []string{p.hash(p.a, p.tmpl), p.states[p.tmpl].Hash} {
			if p.bad[version] {
				breaks = version
			}
		}
		p.pass(breaks)
		for _, addOn := range []**addonv1beta1.ManagedClusterAddOn{&p.a, &p.b, &p.c} {
			raw, err := json.Marshal(*addOn)
			require.NoError(p.t, err)
			*addOn = &addonv1beta1.ManagedClusterAddOn{}
			require.NoError(p.t, json.Unmarshal(raw, *addOn))
		}
	}
}

// edit makes one edit of a person, or has an agent report.
func (p *play) edit() {
	n := p.random.IntN(1000)
	told := ""
	switch p.random.IntN(13) {
	case 0, 1, 2:
		p.versions++
		told = fmt.Sprintf("v%d, which breaks", p.versions)
		p.bad[fmt.Sprintf("v%d", p.versions)] = true
		p.states[p.tmpl] = addonconfig.State{Hash: fmt.Sprintf("v%d", p.versions)}
	case 3:
		told = "all works"
		clear(p.bad)
	case 4, 5, 6:
		own := [][]addonv1beta1.AddOnConfig{
			nil, {fixture.DeploymentConfig("x")}, {fixture.ConfigMap("c")}, {fixture.DeploymentConfig("none")},
		}
		p.a.Spec.Configs = own[n%len(own)]
		told = fmt.Sprintf("a names %v", p.a.Spec.Configs)
	case 7:
		told = "the hash is reported"
		for i := range p.a.Status.ConfigReferences {
			reference := &p.a.Status.ConfigReferences[i]
			if reference.Resource == "configmaps" && reference.DesiredConfig != nil {
				reference.DesiredConfig.SpecHash = "reported"
			}
		}
	case 8:
		status := []metav1.ConditionStatus{"True", "False", "Unknown", ""}[n%4]
		p.available(status)
		told = fmt.Sprintf("available: %q", status)
	case 9:
		told = "another strategy"
		p.switches()
	case 10:
		if strategy := p.strategy().Progressive; strategy != nil {
			strategy.ProgressDeadline = []string{"", "5m", "10m"}[n%3]
			told = "the deadline is " + strategy.ProgressDeadline
		}
	case 11:
		told = "the other configuration is edited"
		p.states[p.rolled] = addonconfig.State{Hash: fmt.Sprintf("r%d", n%3)}
	case 12:
		told = fmt.Sprintf("back to v%d", n%(p.versions+1))
		p.states[p.tmpl] = addonconfig.State{Hash: fmt.Sprintf("v%d", n%(p.versions+1))}
	}
	p.log = append(p.log, told)
}

// available has the agent of cluster a report; nothing with an empty status.
func (p *play) available(status metav1.ConditionStatus) {
	meta.RemoveStatusCondition(&p.a.Status.Conditions, "Available")
	if status != "" {
		p.a = fixture.With(p.a, fixture.Condition("Available", status, "Because", fixture.Noon().Add(p.after)))
	}
}

// switches changes the strategy to All, or back.
func (p *play) switches() {
	if p.progressive == nil {
		p.progressive = p.strategy().DeepCopy()
		*p.strategy() = clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All}
		return
	}
	*p.strategy(), p.progressive = *p.progressive, nil
}

// heals makes all well: nothing breaks, agents report that or nothing, and nobody names a configuration.
func (p *play) heals() {
	clear(p.bad)
	p.a.Spec.Configs = nil
	p.available([]metav1.ConditionStatus{"True", ""}[p.random.IntN(2)])
	if p.progressive != nil {
		p.switches()
	}
	p.passes(120)
}

// end returns who has what, and who counts as failed.
func (p *play) end() string {
	var all []string
	for _, addOn := range []*addonv1beta1.ManagedClusterAddOn{p.a, p.b, p.c} {
		all = append(all, fmt.Sprintf("%s has %s and %s, failed: %t", addOn.Namespace, p.hash(addOn, p.tmpl),
			p.hash(addOn, p.rolled), isFailed(addOn)))
	}
	return strings.Join(all, "; ")
}

// rests requires that nothing is written any more, also where the hub manager starts again.
func (p *play) rests(seed uint64) {
	p.t.Helper()
	a, b, c := p.a.Status, p.b.Status, p.c.Status
	p.passes(5)
	p.r = &rollout.Reconciler{}
	p.passes(5)
	for _, same := range [][2]any{{a, p.a.Status}, {b, p.b.Status}, {c, p.c.Status}} {
		require.Equal(p.t, same[0], same[1], "seed %d, at rest: %s", seed, strings.Join(p.log, ", "))
	}
}

// Whatever people do, a hub manager that starts again, at any time, leads to the same, everything rests then, and when all
// is well everybody has the newest content.
//
// Shows: hub/rollout-failed-noted
func TestARestartChangesNothing(t *testing.T) {
	seeds := []uint64{}
	for seed := range uint64(40) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		goes, restarts := newPlay(t, seed), newPlay(t, seed)
		when := rand.New(rand.NewPCG(seed, 1))
		for range 2 + when.IntN(6) {
			number := []int{1, 2, 4, 40}[when.IntN(4)]
			for _, p := range []*play{goes, restarts} {
				p.edit()
				p.log = append(p.log, fmt.Sprint(number))
			}
			again := when.IntN(number + 1)
			goes.passes(number)
			restarts.passes(again)
			restarts.r = &rollout.Reconciler{}
			restarts.passes(number - again)
			restarts.log = append(restarts.log, fmt.Sprintf("(starts again after %d)", again))
		}
		for _, p := range []*play{goes, restarts} {
			if p.progressive != nil { // While no plan decides, nobody counts failures.
				p.switches()
			}
			p.passes(90)
		}
		require.Equal(t, goes.end(), restarts.end(), "seed %d: %s", seed, strings.Join(restarts.log, ", "))
		for _, p := range []*play{goes, restarts} {
			p.rests(seed)
			p.heals()
			p.rests(seed)
			for _, addOn := range []*addonv1beta1.ManagedClusterAddOn{p.a, p.b, p.c} {
				require.Equal(t, p.states[p.tmpl].Hash, p.hash(addOn, p.tmpl), "seed %d: %s", seed, strings.Join(p.log, ", "))
				assert.Nil(t, meta.FindStatusCondition(addOn.Status.Conditions, names.ConditionRolloutFailed))
			}
		}
	}
}
