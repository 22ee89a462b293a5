package template

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNamesOfVariables(t *testing.T) {
	for name, valid := range map[string]bool{
		"": false, "_": true, "a": true, "z": true, "A": true, "Z": true, "a0": true, "a9": true, "_1": true,
		"0": false, "9a": false, "a-b": false, "a b": false, "a.b": false,
		"`": false, "{": false, "@": false, "[": false, "a/": false, "a:": false,
	} {
		assert.Equal(t, valid, isVariableName(name), "%q", name)
	}
}

func TestAVolumeNameIsShortenedOnlyWhenItIsTooLong(t *testing.T) {
	fits := strings.Repeat("a", maxVolumeName)
	assert.Equal(t, fits, volumeName(fits))
	assert.Len(t, volumeName(fits+"b"), maxVolumeName)
	assert.NotEqual(t, volumeName(fits+"b"), volumeName(fits+"c"))
}
