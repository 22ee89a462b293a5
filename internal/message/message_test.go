package message

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCutKeepsCharactersWhole(t *testing.T) {
	assert.Equal(t, "abc", Cut("abc", 3))
	assert.Equal(t, "a...", Cut("abcde", 4))
	assert.Equal(t, "...", Cut("äbcde", 4))
}

func TestAListNamesTheFirstItems(t *testing.T) {
	assert.Equal(t, "a, b", List([]string{"a", "b"}, 2, ", "))
	assert.Equal(t, "a; b; and 2 more", List([]string{"a", "b", "c", "d"}, 2, "; "))
}
