package agent

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/agent/health"
	"github.com/spokelet/spokelet/internal/roundtrip"
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

// TestASilentHubKeepsTheAgentReadyThatHasWorks: an agent whose certificate expired while the hub is away repairs the
// cluster by its copies; one that joins for the first time does not.
// Shows: registration/ready-without-hub
func TestASilentHubKeepsTheAgentReadyThatHasWorks(t *testing.T) {
	tests := map[string]struct {
		keeps  bool
		status int // 0 is not a response
		want   int
	}{
		"no response, with copies of works":    {true, 0, http.StatusOK},
		"no response, without copies of works": {false, 0, http.StatusServiceUnavailable},
		"a credential that is not known":       {true, http.StatusUnauthorized, http.StatusServiceUnavailable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &report{state: &health.State{}, logger: logr.Discard(), hub: "https://hub", keeps: tc.keeps}
			r.progress("asking")
			hub := r.wrap(roundtrip.Func(func(*http.Request) (*http.Response, error) {
				if tc.status == 0 {
					return nil, errors.New("refused")
				}
				return &http.Response{StatusCode: tc.status, Body: http.NoBody}, nil
			}))
			response, err := hub.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://hub/x", nil))
			if err == nil {
				require.NoError(t, response.Body.Close())
			}
			answer := httptest.NewRecorder()
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
			request.RemoteAddr = "127.0.0.1:1"
			r.state.Handler().ServeHTTP(answer, request)
			assert.Equal(t, tc.want, answer.Code)
		})
	}
}
