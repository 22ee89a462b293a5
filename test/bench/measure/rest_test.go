package measure

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWrites(t *testing.T) {
	assert.Equal(t, map[string]int{"patch managedclusteraddons/status": 2, "delete manifestworks": 1},
		Requests{Kinds: map[string]int{
			"get manifestworks": 7, "list manifestworks": 1, "patch managedclusteraddons/status": 2, "delete manifestworks": 1,
			"create certificatesigningrequests": 1, "update certificatesigningrequests/approval": 1, "update secrets": 2,
			"create events": 3, "create subjectaccessreviews": 9, "create tokenreviews": 1,
		}}.Writes())
	assert.Equal(t, map[string]int{"b": 1, "c": 2}, difference(map[string]int{"a": 1, "b": 3, "c": 2}, map[string]int{"a": 1, "b": 2}))
}

func TestRestIsASpanWithoutWrites(t *testing.T) {
	for name, c := range map[string]struct {
		// writes is how long a user writes, and took how long Rest takes.
		writes, took time.Duration
		failed       string
	}{
		"at once":        {0, 2 * time.Second, ""},
		"in a while":     {3 * time.Second, 5 * time.Second, ""},
		"not in a while": {time.Hour, 10*time.Second + lookEvery, "somebody writes all the time: map[patch works:41]"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := Rest(t.Context(), 2*time.Second, 10*time.Second, func() (map[string]int, error) {
					return map[string]int{"patch works": int(min(time.Since(began), c.writes) / lookEvery)}, nil
				})
				assert.Equal(t, c.took, time.Since(began))
				if c.failed == "" {
					require.NoError(t, err)
					return
				}
				require.EqualError(t, err, c.failed)
			})
		})
	}
	unread := errors.New("unread")
	require.ErrorIs(t, Rest(t.Context(), 1, 1, func() (map[string]int, error) { return nil, unread }), unread)
}
