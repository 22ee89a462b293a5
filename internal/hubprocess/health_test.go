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
	})
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	code, text := get("/readyz")
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "[+]cache ok\n[+]conversion ok\n", text)
	wrong = errors.New("nobody converts")
	code, text = get("/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, "[+]cache ok\n[-]conversion: nobody converts\n", text)
	code, _ = get("/healthz")
	assert.Equal(t, http.StatusOK, code, "to restart it would help nobody")
}
