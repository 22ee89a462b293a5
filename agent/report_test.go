package agent

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Shows: registration/bootstrap-problem-named
func TestTroubleWithTheBootstrapCredentialIsNamed(t *testing.T) {
	tests := map[string]struct {
		method string
		status int
		want   string
	}{
		"a credential that is not known":               {http.MethodGet, 401, "hub https://hub answers 401 Unauthorized to the bootstrap credential"},
		"a right that is missing":                      {http.MethodGet, 403, "hub https://hub answers 403 Forbidden to GET /x with the bootstrap credential"},
		"a hub that is broken":                         {http.MethodPost, 503, "hub https://hub answers 503 Service Unavailable to the bootstrap credential"},
		"that it may not update a ManagedCluster":      {http.MethodPut, 403, ""},
		"that a ManagedCluster does not exist yet":     {http.MethodGet, 404, ""},
		"that a ManagedCluster exists meanwhile":       {http.MethodPost, 409, ""},
		"a watch or anything else that goes well does": {http.MethodGet, 200, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), tc.method, "https://hub/x", nil)
			assert.Equal(t, tc.want, troubleOf("https://hub", request, tc.status))
		})
	}
}
