package roundtrip

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Shows: registration/hub-answers
func TestAnAnswerThatIsTooLongIsEnded(t *testing.T) {
	var short bytes.Buffer
	w := gzip.NewWriter(&short)
	_, err := io.Copy(w, io.LimitReader(zeros{}, 2<<20))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Less(t, short.Len(), 10<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(short.Bytes())
	}))
	defer server.Close()
	for sentence, tc := range map[string]struct {
		most  int64
		query string
		fails bool
	}{
		"it fits":                   {2 << 20, "", false},
		"it is a byte too long":     {2<<20 - 1, "", true},
		"a watch may be any length": {100, "?watch=true", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			client := http.Client{Transport: Limit(tc.most)(http.DefaultTransport)}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+tc.query, nil)
			require.NoError(t, err)
			response, err := client.Do(request)
			require.NoError(t, err)
			defer func() { assert.NoError(t, response.Body.Close()) }()
			n, err := io.Copy(io.Discard, response.Body)
			assert.LessOrEqual(t, n, int64(2<<20))
			assert.Equal(t, tc.fails, err != nil, "%v", err)
		})
	}
}

type zeros struct{}

func (zeros) Read(into []byte) (int, error) { clear(into); return len(into), nil }

// Shows: registration/hub-answers
func TestNoRedirectIsFollowed(t *testing.T) {
	reached := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer other.Close()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect} {
		server := httptest.NewServer(http.RedirectHandler(other.URL, code))
		client := http.Client{Transport: Bound(time.Minute)(http.DefaultTransport)}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
		require.NoError(t, err)
		response, err := client.Do(request)
		if err == nil {
			require.NoError(t, response.Body.Close())
		}
		require.ErrorIs(t, err, errRedirect)
		server.Close()
	}
	assert.Zero(t, reached)
}
