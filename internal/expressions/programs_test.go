package expressions

import (
	"fmt"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Shows: work/rules-bounded
func TestOneExpressionTooManyDoesNotEmptyTheCache(t *testing.T) {
	const rounds, many = 20, 65
	p, compiled := &Programs{Limit: (many - 1) * sizeOf("00")}, 0
	for range rounds {
		for i := range many {
			_, err := p.Of(fmt.Sprintf("%02d", i), func() (cel.Program, error) {
				compiled++
				return nil, nil // nobody runs it
			})
			require.NoError(t, err)
		}
	}
	assert.Less(t, compiled, rounds*many/4)
}
