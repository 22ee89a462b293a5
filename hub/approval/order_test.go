package approval

import (
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// Of several templates one counts, by its place, and what it registers is approved and signed. A cache that has the
// order of before must not decide that.
func TestAnAddOnWithItsTemplatesInAnotherOrderRegistersForSomethingElse(t *testing.T) {
	one, two := fixture.Desires(fixture.Template("one"), "1"), fixture.Desires(fixture.Template("two"), "2")
	cached, live := fixture.AddOn("c1", one, two), fixture.AddOn("c1", two, one)
	assert.True(t, registersSame(cached, cached.DeepCopy()))
	assert.False(t, registersSame(cached, live))
	kinds := []addonv1beta1.ConfigReference{one, fixture.Desires(fixture.DeploymentConfig("c"), "3")}
	assert.True(t, registersSame(fixture.AddOn("c1", kinds...), fixture.AddOn("c1", kinds[1], kinds[0])),
		"the order of kinds says nothing")
}
