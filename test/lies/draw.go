package lies

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spokelet/spokelet/test/proxy"
)

// scene is something that people or the weather do to a fleet.
type scene string

const (
	newImage         scene = "new image"
	badImage         scene = "bad image and its fix"
	deselect         scene = "cluster deselected"
	deselectAndBack  scene = "cluster deselected and selected again"
	deleteAddOn      scene = "add-on deleted by hand"
	deleteManagement scene = "management add-on deleted, with its hooks"
	loseCredential   scene = "credential deleted by hand"
	evict            scene = "work gone while the agent is away"
	denyRequest      scene = "request of a denied cluster"
	deleteCluster    scene = "request of a deleted cluster"
	denyCluster      scene = "cluster denied and accepted again"
	replacePlacement scene = "placement replaced"
	moveObject       scene = "object moved to another work"
	orphan           scene = "work deleted that orphans"
	deleteWork       scene = "work deleted that shares with others"
	killAgent        scene = "agent killed"
	killManager      scene = "hub manager killed"
	// wrongProxy is not drawn by weight.
	wrongProxy scene = "a proxy with a wrong clock that does not reach the hub"
)

// weights say how often scenes are drawn.
func weights() map[scene]int {
	return map[scene]int{
		newImage: 4, badImage: 4, deselect: 2, deselectAndBack: 3, deleteAddOn: 2, deleteManagement: 2, loseCredential: 2,
		evict: 3, denyRequest: 3, deleteCluster: 1, denyCluster: 2, replacePlacement: 4, moveObject: 3, orphan: 2,
		deleteWork: 2, killAgent: 8, killManager: 8,
	}
}

// often reports whether a scene may be played more than once in a play.
func (s scene) often() bool {
	return slices.Contains([]scene{newImage, badImage, replacePlacement, killAgent, killManager}, s)
}

// step is a scene with what is drawn about it.
type step struct {
	scene scene
	// cluster is the number of the cluster that it is about.
	cluster int
	// before is how long to wait before it, within how long it lasts.
	before, within time.Duration
}

func (s step) String() string {
	return fmt.Sprintf("after %s: %s on %s (%s)", s.before.Round(time.Millisecond), s.scene, clusterName(s.cluster),
		s.within.Round(time.Millisecond))
}

// play is all that is drawn from a seed.
type play struct {
	seed uint64
	// atOnce is how many clusters move at a time in a rollout.
	atOnce int
	// early tells that the lies begin before anything is there.
	early bool
	steps []step
	// ofManager are the lies to the hub manager, ofHub and ofOwn those to each agent about the hub and its own cluster.
	ofManager    proxy.Lies
	ofHub, ofOwn []proxy.Lies
}

// draw draws a play. The same seed is the same play.
func draw(seed uint64, clusters, scenes int) play {
	random := rand.New(rand.NewPCG(seed, 7))
	p := play{seed: seed, atOnce: 1 + random.IntN(2), early: random.IntN(2) == 0}
	lies := func() proxy.Lies {
		drawn := proxy.DrawReal(random.Uint64())
		if random.IntN(4) == 0 {
			return proxy.Lies{Seed: drawn.Seed} // one liar alone shows what the others hide
		}
		return drawn
	}
	p.ofManager = lies()
	for range clusters {
		p.ofHub, p.ofOwn = append(p.ofHub, lies()), append(p.ofOwn, lies())
	}
	left := weights()
	for range scenes {
		s := step{scene: pick(random, left), cluster: random.IntN(clusters)}
		s.before = time.Duration(random.Int64N(int64(longestPause)))
		s.within = time.Duration(random.Int64N(int64(longestScene)))
		if !s.scene.often() {
			delete(left, s.scene)
		}
		p.steps = append(p.steps, s)
	}
	if more := rand.New(rand.NewPCG(seed, 8)); more.IntN(2) == 0 {
		s := step{scene: wrongProxy, cluster: more.IntN(clusters), within: longestScene}
		p.steps = slices.Insert(p.steps, more.IntN(scenes), s)
	}
	return p
}

const (
	// longestPause is the longest time between two scenes, longestScene that of a scene between its parts.
	longestPause, longestScene = 1500 * time.Millisecond, 5 * time.Second
)

// pick picks a scene by weight.
func pick(random *rand.Rand, from map[scene]int) scene {
	var all []scene
	for s := range from {
		all = append(all, s)
	}
	slices.Sort(all)
	total := 0
	for _, s := range all {
		total += from[s]
	}
	n := random.IntN(total)
	for _, s := range all {
		if n -= from[s]; n < 0 {
			return s
		}
	}
	panic("the weights have a sum")
}

// scenes lists the scenes.
func (p play) scenes() string {
	names := make([]string, len(p.steps))
	for i, s := range p.steps {
		names[i] = string(s.scene)
	}
	return strings.Join(names, ", ")
}

// name is a name of this play alone.
func (p play) name(what string) string { return fmt.Sprintf("p%x-%s", p.seed, what) }

// clusterName is the name of a cluster.
func clusterName(i int) string { return fmt.Sprintf("cluster%d", i+1) }
