package hubconn

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOnlyAClearStatusProvesThatTheHubKnowsTheUser(t *testing.T) {
	for status, want := range map[int]bool{200: true, 403: true, 404: true, 401: false, 429: false, 500: false, 503: false, 302: false} {
		assert.Equal(t, want, authenticated(status), "%d", status)
	}
}
