package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
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
	p.Ask(key, at(2))
	since(at(2), "a cluster changed")
	second := p.Begin(key, at(3))
	since(at(2), "no pass has looked at it yet")
	p.Ask(key, at(4))
	p.Ask(key, at(5))
	p.End(key, second)
	since(at(4), "another one changed during the pass")
	p.End(key, p.Begin(key, at(6)))
	decided()
	p.Begin(key, at(7))
	p.Begin(key, at(8))
	since(at(7), "a pass that failed has not decided it, nor has the next one")
	p.End(key, p.Begin(key, at(9)))
	decided()
	p.Forget(key)
	since(time.Time{}, "one that is created again")
	var none *Passes
	_, undecided := none.Undecided(key)
	assert.False(t, undecided, "nobody says")
	none.End(key, none.Begin(key, at(1)))
	none.Ask(key, at(1))
	none.Forget(key)
}
