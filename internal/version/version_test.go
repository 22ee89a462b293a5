package version

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestAVersionIsTheValueOfALabel(t *testing.T) {
	for text, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v1.2.3-4-gabcdef0-dirty": "v1.2.3-4-gabcdef0-dirty", "v1.2.3+meta": "v1.2.3.meta",
		"": "", "-x-": "x", "vé1": "v.1", strings.Repeat("a", 62) + "-b": strings.Repeat("a", 62),
	} {
		assert.Equal(t, want, label(text))
		assert.Empty(t, validation.IsValidLabelValue(label(text)))
	}
	assert.Empty(t, validation.IsValidLabelValue(Label()))
}
