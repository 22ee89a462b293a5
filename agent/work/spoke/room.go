package spoke

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"

	"golang.org/x/sync/semaphore"
)

const (
	// roomBytes is how many bytes of JSON are decoded at the same time. Decoded, they take up to 24 times that, and the
	// container of the agent has some 86 MiB beside the rest.
	roomBytes = 2 << 20
	// smallBytes is up to how many bytes of JSON a step never waits for others.
	smallBytes = 16 << 10
	// firstAnswer and perByte are how many bytes the answers about an object of which nothing is known may have: so many,
	// and as many more times those of its manifest. The API server adds managed fields, defaults and a status.
	firstAnswer, perByte = 4 << 10, 3
)

// Room bounds how many bytes of JSON the steps of all works decode at the same time: those of their manifests and of
// the answers of the API server. What an answer takes is not known before it comes, so a step begins with a guess, and
// an answer that is larger is not read: the step begins again with room for it. Steps have their turns in the order in
// which they come. A nil Room bounds nothing.
type Room struct{ free *semaphore.Weighted }

// NewRoom returns a room of two mebibytes.
func NewRoom() *Room { return &Room{free: semaphore.NewWeighted(roomBytes)} }

// Do runs a step, perhaps several times, of which only the last one counts. manifest is how many bytes of JSON it
// decodes beside those of answers, and known how many bytes the largest answer about its object had the last time; zero
// means that nothing is known. The requests of the step must be those of a Client of this package with the context that
// it gets. Do returns how many bytes the largest answer had, zero without any, and an error only when the context ends
// before the step has its turn.
func (r *Room) Do(ctx context.Context, manifest, known int, step func(ctx context.Context)) (largest int, err error) {
	if r == nil {
		step(ctx)
		return known, nil
	}
	limit := firstAnswer + perByte*manifest
	if known > 0 {
		limit = firstAnswer + known + known/8 // it may have grown a little, by its status for example
	}
	for {
		s, err := r.once(ctx, manifest, limit, step)
		if err != nil || !s.exceeded {
			return s.largest, err
		}
		limit = s.largest + s.largest/8
	}
}

// Decode runs what decodes so many bytes of JSON and sends no requests. It returns an error only when the context ends
// before there is room.
func (r *Room) Decode(ctx context.Context, bytes int, decode func()) error {
	if r == nil {
		decode()
		return nil
	}
	_, err := r.once(ctx, bytes, 0, func(context.Context) { decode() })
	return err
}

// once runs a step once, with answers up to a limit. A step that takes all the room may have any.
func (r *Room) once(ctx context.Context, manifest, limit int, step func(ctx context.Context)) (*share, error) {
	s := &share{limit: limit}
	if weight := int64(manifest + limit); weight > smallBytes {
		if weight >= roomBytes {
			weight, s.limit = roomBytes, math.MaxInt-1
		}
		if err := r.free.Acquire(ctx, weight); err != nil {
			return s, fmt.Errorf("waiting for the memory to decode objects: %w", err)
		}
		defer r.free.Release(weight)
	}
	step(context.WithValue(ctx, shareKey{}, s))
	return s, nil
}

// share is how many bytes the answers to the requests of one step may have. The requests come one after the other.
type share struct {
	limit int
	// largest are the bytes of the largest answer, and exceeded reports that one was larger than the limit, so that
	// largest may be a guess.
	largest  int
	exceeded bool
}

// shareKey is the key of the share in a context.
type shareKey struct{}

// LargerError means that an answer was not read, because it is larger than the share of its step. The request had its
// effect.
type LargerError struct{ Limit int }

// Error names the limit.
func (e *LargerError) Error() string {
	return fmt.Sprintf("the answer of the API server has more than %d bytes", e.Limit)
}

// IsLarger reports whether a request failed because its answer is larger than the share of its step.
func IsLarger(err error) bool {
	var larger *LargerError
	return errors.As(err, &larger)
}

// shares passes on answers up to the share of their step, if they are those of one.
type shares struct{ next http.RoundTripper }

// RoundTrip sends one request.
func (t shares) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if s, ok := request.Context().Value(shareKey{}).(*share); ok {
		return s.admit(answer)
	}
	return answer, nil
}

// admit returns an answer that is within the limit. One whose length the API server does not tell, because it is
// compressed, is read for that.
func (s *share) admit(answer *http.Response) (*http.Response, error) {
	size := answer.ContentLength
	if size < 0 {
		body, err := io.ReadAll(io.LimitReader(answer.Body, int64(s.limit)+1))
		_ = answer.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("reading the answer of the API server: %w", err)
		}
		if size = int64(len(body)); size > int64(s.limit) {
			size *= 4 // it is longer than what was read
		}
		answer.Body = io.NopCloser(bytes.NewReader(body))
	}
	s.largest = max(s.largest, int(size))
	if size > int64(s.limit) {
		_ = answer.Body.Close()
		s.exceeded = true
		return nil, &LargerError{Limit: s.limit}
	}
	return answer, nil
}
