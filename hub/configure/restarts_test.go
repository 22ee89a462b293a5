package configure

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/hub/rollout"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// play is a play of people with three clusters, drawn from a seed. What it breaks, it breaks on cluster a.
type play struct {
	*three
	tmpl    addonv1beta1.AddOnConfig
	random  *rand.Rand
	breaks  string
	version int
	log     []string
}

// kinds of configurations that the spec of an add-on may name in a play.
func ownKinds() map[string][]addonv1beta1.AddOnConfig {
	return map[string][]addonv1beta1.AddOnConfig{
		"none": nil, "a known one": {fixture.DeploymentConfig("x")}, "one of an unknown hash": {fixture.ConfigMap("c")},
		"one that does not exist": {fixture.DeploymentConfig("none")},
	}
}

func newPlay(seed uint64) *play {
	p := &play{tmpl: fixture.Template("t"), random: rand.New(rand.NewPCG(seed, 0))}
	p.three = newThree(p.tmpl, fixture.DeploymentConfig("rolled"))
	p.states[fixture.ConfigMap("c")] = addonconfig.State{Unread: "the hub manager does not read it"}
	p.states[fixture.DeploymentConfig("none")] = addonconfig.State{Missing: true}
	p.states[fixture.DeploymentConfig("x")] = addonconfig.State{Hash: "x"}
	p.states[p.tmpl] = addonconfig.State{Hash: "v0"}
	progressive := p.strategy().Progressive
	progressive.MaxConcurrency = intstr.FromInt(1 + p.random.IntN(2))
	if p.random.IntN(4) == 0 {
		progressive.ProgressDeadline = ""
	}
	p.passes(80)
	return p
}

func (p *play) strategy() *clusterv1alpha1.RolloutStrategy {
	return &p.cma.Spec.InstallStrategy.Placements[0].RolloutStrategy
}

func (p *play) passes(number int) {
	for range number {
		p.pass(p.breaks)
	}
}

// edit makes one edit of a person, or has an agent report.
func (p *play) edit() {
	switch p.random.IntN(8) {
	case 0, 1:
		p.version++
		p.breaks = fmt.Sprintf("v%d", p.version)
		p.states[p.tmpl] = addonconfig.State{Hash: p.breaks}
		p.log = append(p.log, "a version that is broken")
	case 2:
		p.breaks = ""
		p.log = append(p.log, "it works")
	case 3, 4, 5:
		sentences := []string{"none", "a known one", "one of an unknown hash", "one that does not exist"}
		which := sentences[p.random.IntN(len(sentences))]
		p.a = p.a.DeepCopy()
		p.a.Spec.Configs = ownKinds()[which]
		p.log = append(p.log, "a names "+which)
	case 6:
		p.a = p.a.DeepCopy()
		for i := range p.a.Status.ConfigReferences {
			reference := &p.a.Status.ConfigReferences[i]
			if reference.Resource == "configmaps" && reference.DesiredConfig != nil {
				reference.DesiredConfig.SpecHash = "reported"
			}
		}
		p.log = append(p.log, "the hash is reported")
	case 7:
		status := []metav1.ConditionStatus{"True", "False", "Unknown"}[p.random.IntN(3)]
		p.a = p.a.DeepCopy()
		conditions := slices.DeleteFunc(p.a.Status.Conditions, func(c metav1.Condition) bool { return c.Type == "Available" })
		p.a.Status.Conditions = append(conditions, fixture.Condition("Available", status, "Because", fixture.Noon().Add(p.after)))
		p.log = append(p.log, "available "+string(status))
	}
}

// end returns what is at the end: who has what, and who counts as failed.
func (p *play) end() string {
	var all []string
	for _, addOn := range []*addonv1beta1.ManagedClusterAddOn{p.a, p.b, p.c} {
		all = append(all, fmt.Sprintf("%s has %s, failed: %t", addOn.Namespace, p.hash(addOn, p.tmpl), isFailed(addOn)))
	}
	return strings.Join(all, "; ")
}

// Whatever people do, a hub manager that starts again, at any time, leads to the same, and everything rests then.
//
// Shows: hub/rollout-failed-noted
func TestARestartChangesNothing(t *testing.T) {
	seeds := []uint64{220, 239} // each found something
	for seed := range uint64(40) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		goes, restarts := newPlay(seed), newPlay(seed)
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
		}
		goes.passes(150)
		restarts.passes(150)
		if !assert.Equal(t, goes.end(), restarts.end(), "seed %d: %s", seed, strings.Join(goes.log, ", ")) {
			return
		}
		a, b, c := restarts.a.Status, restarts.b.Status, restarts.c.Status
		restarts.passes(5)
		restarts.r = &rollout.Reconciler{}
		restarts.passes(60)
		for _, same := range [][2]any{{a, restarts.a.Status}, {b, restarts.b.Status}, {c, restarts.c.Status}} {
			if !assert.Equal(t, same[0], same[1], "seed %d, at rest: %s", seed, strings.Join(goes.log, ", ")) {
				return
			}
		}
	}
}
