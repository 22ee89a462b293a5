package confirmation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/internal/confirmation"
)

func TestAListHasItsOwnName(t *testing.T) {
	name := confirmation.Name("u", []string{"a", "b"})
	assert.Equal(t, "9f971a5b4a99", name, "another version gives the same name: what a person confirmed counts after an upgrade")
	for sentence, other := range map[string]string{
		"of another owner": confirmation.Name("v", []string{"a", "b"}),
		"that is longer":   confirmation.Name("u", []string{"a", "b", "c"}),
		"that is shorter":  confirmation.Name("u", []string{"a"}),
	} {
		assert.NotEqual(t, name, other, "a list %s", sentence)
	}
}
