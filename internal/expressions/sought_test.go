package expressions

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Kubernetes estimates nothing for a text of less than ten bytes and for a list without texts, so to seek a list of 50,000
// empty texts was free: the cost that a Placement may have for a cluster took minutes.
func TestToSeekAListInAListCostsWhatIsLookedAt(t *testing.T) {
	env := environment(t)
	const leaves = 40_000 // are equal before the two lists differ
	two := strings.Replace(shared(4), "[0]", "['']", 1) + ".map(p,[[p,p,p,p,p],[p,p,p,p,dyn(0)]]).map(x,[[x[0]],x[1]])"
	ten := "[0,1,2,3,4,5,6,7,8,9]"
	for sentence, seeks := range map[string]string{
		"the first place": "y[0].indexOf(y[1]) == -1", "the last place": "y[0].lastIndexOf(y[1]) == -1",
		"whether it is in it": "!(y[1] in y[0])", "whether it is it": "y[0][0] != y[1]", // These two are paid for.
	} {
		t.Run(sentence, func(t *testing.T) {
			found, cost, err := evaluated(t, env, two+".all(y,"+ten+".all(i,"+seeks+"))", "")
			require.NoError(t, err)
			assert.Equal(t, true, found)
			assert.Greater(t, cost, uint64(10*leaves)/10, "ten times 40,000 entries were compared, at no less than 0.1 each")
		})
	}
}
