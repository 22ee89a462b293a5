package hubprocess_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/internal/hubprocess"
)

func TestReadinessNamesWhatFails(t *testing.T) {
	var wrong error
	handler := hubprocess.Health([]hubprocess.Check{
		{Name: "cache", Fail: func(context.Context) error { return nil }},
		{Name: "conversion", Fail: func(context.Context) error { return wrong }},
		{Name: "trust", Notes: func() []string { return []string{"as OCM"} }},
	})
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		request.RemoteAddr = "127.0.0.1:1"
		handler.ServeHTTP(w, request)
		return w.Code, w.Body.String()
	}
	code, text := get("/readyz")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+]cache ok\n[+]conversion ok\n", text)
	_, text = get("/readyz?verbose")
	assert.Equal(t, "[+]cache ok\n[+]conversion ok\n[!]trust as OCM\n", text)
	wrong = errors.New("nobody converts")
	code, text = get("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, "[+]cache ok\n[-]conversion nobody converts\n", text)
	code, _ = get("/healthz")
	assert.Equal(t, http.StatusOK, code, "to restart it would help nobody")
}
