package kept

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// FuzzAWeightIsTheSameBeforeAndAfterDecoding: what is not decoded yet is weighed like what is.
func FuzzAWeightIsTheSameBeforeAndAfterDecoding(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `{"a":0}`, `[1,-2.5,true,null,"x"]`, `{"a":{"b":[{},{"c":"}{,:\\\""}]}}`, `[[],[[]]]`, `"x"`, `1`,
		`{` + strings.TrimSuffix(strings.Repeat(`"k":{"v":[1,2]},`, 20), ",") + `}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		WeighJSON(text) // whatever it is
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			return
		}
		again, err := json.Marshal(value)
		if err != nil {
			return
		}
		// Escaped characters are weighed as they are in the text.
		escaped := strings.Count(string(again), "\\") * 6
		want, got := Weigh(value), WeighJSON(string(again))
		assert.GreaterOrEqual(t, got, want)
		assert.LessOrEqual(t, got, want+want/3+escaped+boxed)
	})
}
