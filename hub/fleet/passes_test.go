package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

func TestAPlacementIsUndecidedUntilAPassEndsThatBeganAfterAllChanges(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	var p Passes
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	since := func(want time.Time, why string) {
		t.Helper()
		u, undecided := p.Undecided(key)
		assert.True(t, undecided, why)
		assert.Equal(t, want, u.Since, why)
		assert.Error(t, u.Why, why)
	}
	decided := func() {
		t.Helper()
		_, undecided := p.Undecided(key)
		assert.False(t, undecided)
	}
	since(time.Time{}, "this process has not decided it yet")
	first := p.Begin(key, at(1))
	since(at(1), "the pass may write something")
	p.End(key, first)
	decided()
	p.Ask(key, "c2", at(2))
	since(at(2), "a cluster changed")
	second := p.Begin(key, at(3))
	since(at(2), "no pass has looked at it yet")
	p.Ask(key, "c4", at(4))
	p.Ask(key, "c5", at(5))
	p.End(key, second)
	since(at(4), "another one changed during the pass")
	p.End(key, p.Begin(key, at(6)))
	decided()
	p.Begin(key, at(7))
	p.Begin(key, at(8))
	since(at(7), "a pass that failed has not decided it, nor has the next one")
	p.End(key, p.Begin(key, at(9)))
	decided()
	p.Doubt(key, map[string]bool{"c1": true})
	assert.True(t, p.Unknown(key)["c1"])
	p.Forget(key)
	assert.False(t, p.Unknown(key)["c1"], "one that is created again has been looked at by nobody")
	since(time.Time{}, "one that is created again")
	var none *Passes
	_, undecided := none.Undecided(key)
	assert.False(t, undecided, "nobody says")
	none.End(key, none.Begin(key, at(1)))
	none.Ask(key, "c1", at(1))
	none.Doubt(key, map[string]bool{"c1": true})
	assert.Empty(t, none.Unknown(key))
	none.Forget(key)
}

func TestWhatChangedIsTouchedUntilAPassEndsThatBeganAfterIt(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	now := time.Unix(1, 0)
	var p Passes
	touched := func() (touched []string) {
		u, _ := p.Undecided(key)
		for _, cluster := range []string{"c1", "c2", "c3"} {
			if u.Touches(cluster) {
				touched = append(touched, cluster)
			}
		}
		return touched
	}
	p.Ask(key, NoCluster, now)
	first := p.Begin(key, now)
	assert.Len(t, touched(), 3, "this process has not decided at all")
	p.End(key, first)
	p.Ask(key, NoCluster, now)
	assert.Empty(t, touched(), "a page was written")
	p.Ask(key, "c1", now)
	begun := p.Begin(key, now)
	p.Ask(key, "c2", now)
	assert.Equal(t, []string{"c1", "c2"}, touched(), "a pass is under way")
	p.Ask(key, "c1", now)
	p.End(key, begun)
	assert.Equal(t, []string{"c1", "c2"}, touched(), "both changed after it began")
	begun = p.Begin(key, now)
	p.End(key, begun)
	assert.Empty(t, touched())
	p.Ask(key, EachCluster, now)
	assert.Len(t, touched(), 3, "a set was edited")
	p.End(key, p.Begin(key, now))
	assert.Empty(t, touched())
	p.Begin(key, now)
	assert.Empty(t, touched(), "a pass that begins by itself")
}

// Who asks about one cluster learns the same about it as who asks about all.
func TestOneClusterIsAsUndecidedAsAmongAll(t *testing.T) {
	passes, key, now := &Passes{}, types.NamespacedName{Namespace: "ns", Name: "p"}, time.Now()
	same := func(want ...bool) {
		t.Helper()
		all, undecided := passes.Undecided(key)
		for i, cluster := range []string{"c1", "c2"} {
			one, is := passes.UndecidedAbout(key, cluster)
			require.Equal(t, undecided, is)
			require.Equal(t, all.Since, one.Since)
			require.Equal(t, want[i], undecided && all.Touches(cluster))
			require.Equal(t, want[i], is && one.Touches(cluster), cluster)
		}
	}
	same(true, true) // nothing was decided at all
	passes.End(key, passes.Begin(key, now))
	same(false, false)
	passes.Ask(key, "c1", now)
	same(true, false)
	passes.Ask(key, EachCluster, now)
	same(true, true)
}

// A pass judges a cluster of which it was unknown whether it is selected. Until that is written it is as unknown.
func TestADoubtEndsWithThePassThatEndsIt(t *testing.T) {
	passes, key, now := &Passes{}, types.NamespacedName{Namespace: "ns", Name: "p"}, time.Now()
	begun := passes.Begin(key, now)
	passes.Doubt(key, map[string]bool{"c1": true})
	passes.End(key, begun)
	passes.Begin(key, now)
	passes.Doubt(key, map[string]bool{"c2": true})
	require.Equal(t, map[string]bool{"c1": true, "c2": true}, passes.Unknown(key), "it has not come to its end")
	begun = passes.Begin(key, now) // a pass that tells nothing, as of a Placement that is misconfigured
	passes.End(key, begun)
	require.Equal(t, map[string]bool{"c1": true, "c2": true}, passes.Unknown(key))
	begun = passes.Begin(key, now)
	passes.Doubt(key, nil)
	passes.End(key, begun)
	require.Empty(t, passes.Unknown(key))
}

// The handler of the placement hears of a change after the cache has it, and the agent changes its cluster all the time.
func TestWhichVersionOfAClusterAPlacementHasHeardOf(t *testing.T) {
	of := func(version string) *clusterv1.ManagedCluster {
		return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", ResourceVersion: version}}
	}
	var p Passes
	assert.True(t, p.Saw(of("7")), "nothing is noted")
	p.See("c2", of("1"))
	assert.False(t, p.Saw(of("7")), "it has not heard of the cluster")
	for version, want := range map[string]bool{"6": false, "7": true, "8": true, "10": true, "": false, "x": false} {
		p.See("c1", of(version))
		assert.Equal(t, want, p.Saw(of("7")), "of %q", version)
	}
	p.See("c1", nil)
	assert.False(t, p.Saw(of("7")), "it heard that it is gone")
	assert.True(t, p.Saw(nil))
}
