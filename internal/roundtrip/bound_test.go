package roundtrip

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slow is a server that needs some time for each step of a request; forever never comes.
type slow struct {
	// read, headers and body are how long it takes until a part of the request is read, the answer begins, and a part of
	// it comes.
	read, headers, body time.Duration
	// parts is how many parts the answer has.
	parts int
}

const forever = 1000 * time.Hour

// wait waits as long as the request lasts.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slow) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	if request.Body != nil {
		for part := make([]byte, 1); ; {
			if err := wait(ctx, s.read); err != nil {
				return nil, err
			}
			if _, err := request.Body.Read(part); err != nil {
				break
			}
		}
	}
	if err := wait(ctx, s.headers); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&answer{
		left: s.parts, wait: func() error { return wait(ctx, s.body) },
	})}, nil
}

// answer is the body of an answer of a slow server.
type answer struct {
	left int
	// wait waits for the next part.
	wait func() error
}

func (a *answer) Read(into []byte) (int, error) {
	if a.left == 0 {
		return 0, io.EOF
	}
	if err := a.wait(); err != nil {
		return 0, err
	}
	a.left--
	return copy(into, "x"), nil
}

// Shows: work/silent-request
func TestARequestThatMakesNoProgressEnds(t *testing.T) {
	const silence = time.Minute
	for sentence, c := range map[string]struct {
		server slow
		query  string
		upload string
		// ends is after how long the request ends, broken whether it was given up.
		ends   time.Duration
		broken bool
	}{
		"an answer in time":                             {server: slow{headers: 50 * time.Second, parts: 1}, ends: 50 * time.Second},
		"no answer":                                     {server: slow{headers: forever}, ends: silence, broken: true},
		"an answer that stops":                          {server: slow{parts: 1, body: forever}, ends: silence, broken: true},
		"a long answer over a slow link":                {server: slow{parts: 10, body: 50 * time.Second}, ends: 500 * time.Second},
		"a large request over a slow link":              {server: slow{read: 50 * time.Second}, upload: "xxx", ends: 200 * time.Second},
		"a request that the server does not read":       {server: slow{read: forever}, upload: "x", ends: silence, broken: true},
		"a watch that does not begin":                   {server: slow{headers: forever}, query: "watch=true&timeoutSeconds=300", ends: silence, broken: true},
		"a watch that shows nothing until it ends":      {server: slow{parts: 1, body: 300 * time.Second}, query: "watch=1&timeoutSeconds=300", ends: 300 * time.Second},
		"a watch that does not end":                     {server: slow{parts: 1, body: forever}, query: "watch=true&timeoutSeconds=300", ends: 300*time.Second + silence, broken: true},
		"a watch that may last forever":                 {server: slow{parts: 1, body: 10 * time.Hour}, query: "watch=true", ends: 10 * time.Hour},
		"a log that is followed":                        {server: slow{parts: 1, body: 10 * time.Hour}, query: "follow=true", ends: 10 * time.Hour},
		"a watch of which the time cannot be read":      {server: slow{parts: 1, body: 10 * time.Hour}, query: "watch=true&timeoutSeconds=x", ends: 10 * time.Hour},
		"a list that says that it is not to be watched": {server: slow{parts: 1, body: forever}, query: "watch=false", ends: silence, broken: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var body io.Reader
				if c.upload != "" {
					body = strings.NewReader(c.upload)
				}
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server/?"+c.query, body)
				require.NoError(t, err)
				began := time.Now()
				response, err := Bound(silence)(c.server).RoundTrip(request)
				if err == nil {
					_, err = io.ReadAll(response.Body)
					require.NoError(t, response.Body.Close())
				}
				assert.Equal(t, c.ends, time.Since(began))
				if c.broken {
					require.ErrorIs(t, err, errSilent)
				} else {
					require.NoError(t, err)
				}
			})
		})
	}
}

func TestACallerThatEndsItsRequestIsToldItsOwnReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server/", nil)
		require.NoError(t, err)
		response, err := Bound(time.Minute)(slow{headers: forever}).RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, errSilent)
	})
}

// Shows: work/retry-after
func TestAServerAsksForAPauseOfAMinuteAtMost(t *testing.T) {
	for asked, want := range map[string]string{
		"1": "1", "60": "60", "61": "60", "86400": "60", "": "", "Wed, 21 Oct 2026 07:28:00 GMT": "Wed, 21 Oct 2026 07:28:00 GMT",
	} {
		t.Run(asked, func(t *testing.T) {
			server := Func(func(*http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: http.StatusTooManyRequests, Body: http.NoBody, Header: http.Header{"Retry-After": {asked}},
				}, nil
			})
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://hub", http.NoBody)
			require.NoError(t, err)
			response, err := Bound(time.Minute)(server).RoundTrip(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, want, response.Header.Get("Retry-After"))
		})
	}
}
