package roundtrip

import (
	"fmt"
	"io"
	"net/http"
)

// Limit returns a middleware that ends an answer which is longer than so many bytes, counted after decompression: a
// short one may become any number, and clients read all of it. Watches have no end, and their events are read one by
// one.
func Limit(most int64) Middleware {
	return func(next http.RoundTripper) http.RoundTripper {
		return Func(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err != nil || response.StatusCode == http.StatusSwitchingProtocols {
				return response, err
			}
			if _, isWatch := lasts(request.URL.Query()); !isWatch {
				response.Body = &limited{ReadCloser: response.Body, left: most, most: most}
			}
			return response, nil
		})
	}
}

// limited is a body that fails when it is too long.
type limited struct {
	io.ReadCloser

	left, most int64
}

// Read implements io.Reader.
func (b *limited) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer of the server is longer than the %d bytes that there is room for", b.most)
	}
	return n, err
}
