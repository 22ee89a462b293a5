package probe_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/spokelet/spokelet/internal/probe"
)

// ask returns the answer to a client at an address.
func ask(t *testing.T, from, path string, good bool, lines ...probe.Line) (int, string) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	request.RemoteAddr = from
	w := httptest.NewRecorder()
	probe.Respond(w, request, good, lines...)
	return w.Code, w.Body.String()
}

// Shows: security/health-causes
func TestAPodCannotReadCausesFromHealthEndpoints(t *testing.T) {
	const secret = "https://hub.example.com does not answer"
	lines := []probe.Line{
		{Name: "cache", Text: "ok"}, {Name: "hub", Text: secret, State: probe.Failed},
		{Name: "unknown", Text: secret, State: probe.Note}, {Text: secret}, {Name: "agent", Text: secret},
	}
	for from, path := range map[string]string{
		"10.1.2.3:4567": "/readyz", "[2001:db8::1]:4567": "/readyz?verbose", "192.168.0.1:80": "/healthz?verbose=1",
		"[::ffff:10.1.2.3]:80": "/readyz?verbose", "": "/readyz?verbose", "localhost:80": "/readyz",
	} {
		code, text := ask(t, from, path, false, lines...)
		assert.Equal(t, http.StatusServiceUnavailable, code, from)
		assert.Equal(t, "[+]cache ok\n[-]hub failed: reason withheld\n[+]agent ok\n", text, from)
	}
	code, text := ask(t, "10.1.2.3:4567", "/readyz/hub", false, probe.Line{Text: secret})
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Equal(t, "failed: reason withheld\n", text)
	_, text = ask(t, "10.1.2.3:4567", "/healthz", true, probe.Line{Text: secret})
	assert.Equal(t, "ok\n", text)
}

func TestAClientOnTheLoopbackAddressIsToldCauses(t *testing.T) {
	lines := []probe.Line{
		{Name: "hub", Text: "it is away", State: probe.Failed}, {Name: "trust", Text: "as OCM", State: probe.Note}, {Text: "serving"},
	}
	for _, from := range []string{"127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "127.1.2.3:1"} {
		code, text := ask(t, from, "/readyz", true, lines...)
		assert.Equal(t, http.StatusOK, code)
		assert.Equal(t, "[-]hub it is away\nserving\n", text, from)
		_, text = ask(t, from, "/readyz?verbose", true, lines...)
		assert.Equal(t, "[-]hub it is away\n[!]trust as OCM\nserving\n", text, from)
	}
}
