package spoke

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"

	"golang.org/x/sync/semaphore"
)

const (
	// roomBytes is how many bytes of JSON the large steps of all passes decode at the same time. Decoded, they take up to
	// 24 times that, and the container of the agent has some 86 MiB beside the rest.
	roomBytes = 2 << 20
	// ownBytes is how much each pass has for its other steps: together, ten workers have less than a third of the room.
	ownBytes = 64 << 10
	// firstAnswer and perByte are how many bytes the answers about an object of which nothing is known may have: so many,
	// and as many more times those of its manifest. The API server adds managed fields, defaults and a status. From
	// generous on, that is once more what a manifest has.
	firstAnswer, perByte, generous = 4 << 10, 3, 16 << 10
)

// Room bounds how many bytes of JSON the steps of all works decode at the same time: those of their manifests and of
// the answers of the API server. What an answer takes is not known before it comes, so a step begins with a guess, and
// an answer that is larger is not read: the step begins again with room for it. Steps have their turns in the order in
// which they come. A nil Room bounds nothing.
type Room struct {
	// free is the room of all passes, own that of this one.
	free, own *semaphore.Weighted
}

// Pass returns the room of one pass: its steps up to ownBytes wait for each other only, and larger ones for those of
// others.
func (r *Room) Pass() *Room {
	if r == nil {
		return nil
	}
	return &Room{free: r.free, own: semaphore.NewWeighted(ownBytes)}
}

// NewRoom returns a room of two mebibytes, for one pass. Pass returns it for others.
func NewRoom() *Room { return (&Room{free: semaphore.NewWeighted(roomBytes)}).Pass() }

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
	limit := min(firstAnswer+perByte*manifest, max(generous, firstAnswer+manifest))
	if known > 0 {
		limit = firstAnswer + known + known/8 // it may have grown a little, by its status for example
	}
	for {
		s, err := r.once(ctx, manifest, limit, step)
		if err != nil || !s.exceeded {
			return s.largest, err
		}
		limit = s.needed + s.needed/8
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
	room, weight := r.own, int64(manifest+limit)
	if weight > ownBytes {
		room = r.free
	}
	if weight >= roomBytes {
		weight, s.limit = roomBytes, math.MaxInt-1
	}
	if err := room.Acquire(ctx, weight); err != nil {
		return s, fmt.Errorf("waiting for the memory to decode objects: %w", err)
	}
	defer room.Release(weight)
	step(context.WithValue(ctx, shareKey{}, s))
	return s, nil
}

// share is how many bytes the answers to the requests of one step may have. The requests come one after the other.
type share struct {
	limit int
	// largest are the bytes of the largest object in an answer: a refusal tells nothing about the size of one.
	largest int
	// exceeded reports that an answer was larger than the limit, and needed are the bytes of the largest answer.
	needed   int
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
	if s, ok := request.Context().Value(shareKey{}).(*share); ok && s != nil {
		return s.admit(answer, !repeatable(request))
	}
	return answer, nil
}

// Outside returns a context whose requests belong to no step, for what is asked once for several of them.
func Outside(ctx context.Context) context.Context {
	return context.WithValue(ctx, shareKey{}, (*share)(nil))
}

// repeatable reports whether a request may be sent again without its answer: a read, a dry run, and an applied
// configuration, which comes to the same. Other writes follow a read, or their answer is about as large as their
// manifest; what the API server completed is known from their answer alone.
func repeatable(r *http.Request) bool {
	if r.Method == "" || r.Method == http.MethodGet {
		return true
	}
	return r.URL.Query().Has("dryRun") ||
		(r.Method == http.MethodPatch && strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch"))
}

// admit returns an answer that is within the limit, or that must be read. One whose length the API server does not
// tell, as it does with none of more than 4 KiB, is read for that; what is beyond the limit is counted and not kept.
func (s *share) admit(answer *http.Response, always bool) (*http.Response, error) {
	limit := int64(s.limit)
	if always {
		limit = math.MaxInt64 - 1
	}
	size := answer.ContentLength
	if size < 0 {
		body, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
		if size = int64(len(body)); err == nil && size > limit {
			var more int64
			more, err = io.Copy(io.Discard, answer.Body)
			size += more
		}
		_ = answer.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("reading the answer of the API server: %w", err)
		}
		answer.Body = io.NopCloser(bytes.NewReader(body))
	}
	s.needed = max(s.needed, int(size))
	if answer.StatusCode < http.StatusBadRequest {
		s.largest = max(s.largest, int(size))
	}
	if size > limit {
		_ = answer.Body.Close()
		s.exceeded = true
		return nil, &LargerError{Limit: s.limit}
	}
	return answer, nil
}
