package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/policies"
)

// A condition has a message of at most 32768 bytes: a longer one is refused with the whole status, again and again.
func TestTheSentenceOfALongCycleFitsIntoACondition(t *testing.T) {
	var all []policies.AddOnPolicy
	name := func(i int) string { return fmt.Sprintf("%s-%03d", strings.Repeat("a", 240), i%150) }
	for i := range 150 {
		p := policies.AddOnPolicy{ObjectMeta: metav1.ObjectMeta{Name: name(i)}}
		p.Spec.DependsOn = []policies.Dependency{{Name: name(i + 1)}}
		all = append(all, p)
	}
	g := gate.New(name(0), &all[0], nil).After(name(0), gate.NewOrder(all), func(string) bool { return true })
	v := g.Judge(gate.Cluster{}, "content", noon())
	assert.LessOrEqual(t, len(v.Held), 32768)
}
