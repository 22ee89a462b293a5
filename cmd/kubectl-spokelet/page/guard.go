package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
)

// policy is the Content-Security-Policy of all answers.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// newToken returns a token of 256 bits that can stand in a path.
func newToken() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // It never fails.
	return base64.RawURLEncoding.EncodeToString(raw)
}

// guard lets requests to a handler that know the token, and no others: one without it learns nothing. It takes the
// token off the path.
func guard(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		given, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		has := sha256.Sum256([]byte(given)) // Of one length, so that comparing takes the same time for each.
		switch {
		case subtle.ConstantTimeCompare(want[:], has[:]) != 1, !isLoopback(r.Host):
			w.WriteHeader(http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			inner := r.Clone(r.Context())
			inner.URL.Path, inner.URL.RawPath = "/"+rest, ""
			next.ServeHTTP(w, inner)
		}
	})
}

// isLoopback reports whether the host of a request names this machine. Another name that leads here is one that a
// stranger made, so that pages of theirs may read the answers. The port is free: a tunnel has another one.
func isLoopback(host string) bool {
	name := host
	if before, _, err := net.SplitHostPort(host); err == nil {
		name = before
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return strings.EqualFold(name, "localhost") || name == "127.0.0.1" || name == "::1"
}
