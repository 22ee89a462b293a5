package decode

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// contextKey is the key of the source whose requests are taken apart.
type contextKey struct{}

// apart makes the answers to requests with the context be taken apart for a source.
func apart(ctx context.Context, s *source) context.Context {
	return context.WithValue(ctx, contextKey{}, s)
}

// transport takes apart the answers to requests whose context asks for it, and passes all others on.
type transport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	s, wanted := request.Context().Value(contextKey{}).(*source)
	if err != nil || !wanted || response.StatusCode != http.StatusOK || !isJSON(response.Header) {
		return response, err // a transport passes errors on
	}
	query := request.URL.Query()
	if watch := query.Get("watch"); watch == "true" || watch == "1" {
		response.Body = s.follow(request.Context(), response.Body)
	} else if response.Body, err = s.takeApart(request.Context(), response.Body, query.Get("continue") == ""); err != nil {
		return nil, err
	}
	response.ContentLength = -1
	response.Header.Del("Content-Length")
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// isJSON reports whether an answer is JSON. Other encodings are those of built-in kinds, which the API server decodes
// into the same Go types itself.
func isJSON(header http.Header) bool {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && media == "application/json"
}

// takeApart reads a list and returns it with what can be decoded of each item. first reports whether it is the first
// page of the list.
func (s *source) takeApart(ctx context.Context, body io.ReadCloser, first bool) (io.ReadCloser, error) {
	raw, err := io.ReadAll(body)
	if failed := body.Close(); err == nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("reading a list: %w", err)
	}
	whole, verdicts, err := s.kind.list(raw)
	if err != nil {
		return nil, err
	}
	if first {
		s.forgetAll()
	}
	for _, v := range verdicts {
		s.learn(ctx, v)
	}
	return io.NopCloser(bytes.NewReader(whole)), nil
}

// follow returns the body of a watch with what can be decoded of each event.
func (s *source) follow(ctx context.Context, body io.ReadCloser) io.ReadCloser {
	return &events{
		source: s, body: body, in: json.NewDecoder(body), learn: func(v verdict) { s.learn(ctx, v) },
	}
}

// events is the body of a watch that is taken apart event by event.
type events struct {
	source *source
	// learn notes what came of decoding an object, within the request that the body answers.
	learn func(verdict)
	body  io.ReadCloser
	in    *json.Decoder
	rest  []byte
}

// Read implements io.Reader.
func (e *events) Read(into []byte) (int, error) {
	for len(e.rest) == 0 {
		var raw json.RawMessage
		if err := e.in.Decode(&raw); err != nil {
			return 0, err // io.EOF is an answer
		}
		next, about, v, ours := e.source.kind.event(raw)
		switch {
		case ours && about.Type == "DELETED":
			e.source.forget(v.about.Key)
		case ours:
			e.learn(v)
		}
		if next != nil {
			next = append(next, '\n')
			e.rest = next
		}
	}
	n := copy(into, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (e *events) Close() error { return e.body.Close() } // a body passes errors on
