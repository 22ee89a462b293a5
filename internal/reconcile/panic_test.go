package reconcile

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unprintableError is a value that panics whenever it is printed.
type unprintableError struct{}

func (unprintableError) Error() string { panic(unprintableError{}) }

func TestAPanicBecomesAnError(t *testing.T) {
	require.NoError(t, Contain(t.Context(), "x", func() {}))
	err := Contain(t.Context(), "x", func() { panic("the defect") })
	require.EqualError(t, err, "the agent failed, which is a defect of it: the defect; its log has the details")
	err = Contain(t.Context(), "x", func() { panic(unprintableError{}) })
	require.ErrorContains(t, err, "a reconcile.unprintableError")
	assert.ErrorAs(t, err, new(*PanicError))
}
