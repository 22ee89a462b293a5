package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

func TestAPlacementIsUndecidedUntilAPassEndsThatBeganAfterAllChanges(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "p"}
	var p Passes
	assert.Error(t, p.Undecided(key), "this process has not decided it yet")
	first := p.Begin(key)
	assert.Error(t, p.Undecided(key), "the pass may write something")
	p.End(key, first)
	assert.NoError(t, p.Undecided(key))
	p.Ask(key)
	assert.Error(t, p.Undecided(key), "a cluster changed")
	second := p.Begin(key)
	p.Ask(key)
	p.End(key, second)
	assert.Error(t, p.Undecided(key), "another one changed during the pass")
	p.End(key, p.Begin(key))
	assert.NoError(t, p.Undecided(key))
	p.Begin(key)
	assert.Error(t, p.Undecided(key), "a pass that failed has not decided it")
	p.End(key, p.Begin(key))
	p.Forget(key)
	assert.Error(t, p.Undecided(key), "one that is created again")
	assert.NoError(t, (*Passes)(nil).Undecided(key), "nobody says")
	(*Passes)(nil).End(key, (*Passes)(nil).Begin(key))
	(*Passes)(nil).Ask(key)
	(*Passes)(nil).Forget(key)
}
