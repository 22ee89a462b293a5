package addonconfig_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// A cluster that failed with one order has not failed with the other one, which may be the remedy, and a soak with one
// says nothing about the other one.
//
// Shows: hub/config-order
func TestAnotherOrderOfTheConfigurationsOfAKindIsAnotherContent(t *testing.T) {
	one, two := fixture.Desires(fixture.Template("one"), "1"), fixture.Desires(fixture.Template("two"), "2")
	assert.NotEqual(t, addonconfig.ContentsOf([]addonv1beta1.ConfigReference{one, two}),
		addonconfig.ContentsOf([]addonv1beta1.ConfigReference{two, one}))
}
