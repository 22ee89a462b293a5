package expressions

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A call of type or optional.of lengthens the type of what is around it as much as a list does. 245 of them in each other,
// around 700 lists, took two minutes to check, and nothing interrupts that.
func TestCallsInEachOtherLengthenTypesAsListsDo(t *testing.T) {
	nested := func(function string, times int, inner string) string {
		return strings.Repeat(function+"(", times) + inner + strings.Repeat(")", times)
	}
	lists := strings.Repeat("[", maxNested) + strings.Repeat("]", maxNested)
	env := environment(t)
	for sentence, expression := range map[string]string{
		"types of types":               nested("type", 150, "1"),
		"types of lists":               nested("type", 60, lists),
		"types of a list of many":      nested("type", 100, "["+strings.Repeat("[],", 400)+"[]]"),
		"what is there of what is":     nested("optional.of", 150, "1"),
		"what is there, conditionally": strings.Repeat("true?optional.of(", 80) + "1" + strings.Repeat("):optional.none()", 80),
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := Compile(env, expression)
			require.Error(t, err, "what lengthens types is bounded before they are checked")
		})
	}
}
