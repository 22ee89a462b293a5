package spoke

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/agent/work/manifest"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// sized is an API server whose objects have so many bytes. It counts the requests; untold leaves out their length, as
// with a compressed answer.
type sized struct {
	bytes    int
	untold   bool
	requests atomic.Int32
}

func (s *sized) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests.Add(1)
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	head := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"x":"`, name)
	body := head + strings.Repeat("y", max(0, s.bytes-len(head)-3)) + `"}}`
	answer := &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
	}
	if s.untold {
		answer.ContentLength = -1
	}
	return answer, nil
}

func clientOf(t *testing.T, transport http.RoundTripper) Client {
	t.Helper()
	c, err := NewClient(&rest.Config{Host: "http://spoke.example"}, &http.Client{Transport: transport})
	require.NoError(t, err)
	return c
}

func TestAnAnswerThatIsLargerThanWasThoughtIsAskedForAgain(t *testing.T) {
	for sentence, c := range map[string]struct {
		manifest, known, bytes int
		untold                 bool
		steps                  int
	}{
		"a small object comes at once":                      {manifest: 1000, bytes: 6000, steps: 1},
		"one that is larger than guessed comes the second":  {manifest: 1000, bytes: 100_000, steps: 2},
		"one that is known comes at once":                   {manifest: 1000, known: 100_000, bytes: 100_000, steps: 1},
		"one that grew a little, too":                       {manifest: 1000, known: 100_000, bytes: 110_000, steps: 1},
		"one that grew much comes the second time":          {manifest: 1000, known: 100_000, bytes: 200_000, steps: 2},
		"one that is larger than the room comes, too":       {manifest: 1000, bytes: 2 * roomBytes, steps: 2},
		"one of a length that is not told, if it is small":  {bytes: 4000, untold: true, steps: 1},
		"one that is a little larger than was guessed":      {bytes: 10_000, untold: true, steps: 2},
		"one that is much larger comes the second time":     {bytes: 1_000_000, untold: true, steps: 2},
		"one larger than the room of a length not told":     {bytes: 2 * roomBytes, untold: true, steps: 2},
		"a large manifest whose object is about as large":   {manifest: 300_000, bytes: 303_000, steps: 1},
		"a manifest larger than the room takes all of it":   {manifest: 2 * roomBytes, bytes: 4 * roomBytes, steps: 1},
		"a step without a known object and without answers": {manifest: 0, bytes: 0, steps: 1},
	} {
		t.Run(sentence, func(t *testing.T) {
			server := &sized{bytes: c.bytes, untold: c.untold}
			client := clientOf(t, server)
			room, steps := NewRoom(), 0
			var got int
			largest, err := room.Do(t.Context(), c.manifest, c.known, func(ctx context.Context) {
				steps++
				live, err := client.At(configMaps, manifest.ID{Name: "x", Namespace: "ns"}).Get(ctx)
				if got = 0; err == nil {
					text, _ := live.MarshalJSON()
					got = len(text)
				} else {
					assert.True(t, IsLarger(err), "%v", err)
				}
			})
			require.NoError(t, err)
			assert.Equal(t, c.steps, steps)
			assert.EqualValues(t, steps, server.requests.Load())
			assert.InDelta(t, max(c.bytes, 70), got, 20, "the last step has the object")
			assert.InDelta(t, max(c.bytes, 70), largest, 20)
			assert.True(t, room.free.TryAcquire(roomBytes), "nothing stays taken")
		})
	}
}

func TestRequestsOfNoStepHaveAnswersOfAnyLength(t *testing.T) {
	client := clientOf(t, &sized{bytes: 2 * roomBytes})
	_, err := client.At(configMaps, manifest.ID{Name: "x", Namespace: "ns"}).Get(t.Context())
	require.NoError(t, err)
	var none *Room
	_, err = none.Do(t.Context(), 1, 1, func(ctx context.Context) {
		_, err := client.At(configMaps, manifest.ID{Name: "x", Namespace: "ns"}).Get(ctx)
		require.NoError(t, err)
	})
	require.NoError(t, err)
	require.NoError(t, none.Decode(t.Context(), roomBytes, func() {}))
}

// Shows: work/decode-bounded
//
// TestWhatIsDecodedAtTheSameTimeIsBounded has steps of all sizes at the same time, which know nothing of their objects.
func TestWhatIsDecodedAtTheSameTimeIsBounded(t *testing.T) {
	const workers, each, biggest = 80, 20, 22
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			room := NewRoom()
			var passes []*Room
			for range workers / 8 {
				passes = append(passes, room.Pass())
			}
			var mu sync.Mutex
			var inside, most, alone int
			enter := func(bytes, sign int) {
				mu.Lock()
				defer mu.Unlock()
				if inside += sign * bytes; bytes > roomBytes {
					alone += sign
				}
				if alone == 0 {
					most = max(most, inside)
				}
				assert.LessOrEqual(t, alone, 1)
			}
			var all sync.WaitGroup
			for worker := range workers {
				var sizes [][2]int
				for range each {
					sizes = append(sizes, [2]int{1 << random.IntN(biggest-1), 1 << random.IntN(biggest)})
				}
				pause := time.Duration(random.IntN(1000)) * time.Millisecond
				all.Go(func() {
					for _, size := range sizes {
						_, err := passes[worker%len(passes)].Do(t.Context(), size[0], 0, func(ctx context.Context) {
							bytes := size[0]
							answer, err := shares{told(size[1])}.RoundTrip((&http.Request{}).WithContext(ctx))
							if err == nil {
								bytes += size[1]
								_ = answer.Body.Close()
							}
							enter(bytes, 1)
							<-time.After(pause)
							enter(bytes, -1)
						})
						assert.NoError(t, err)
					}
				})
			}
			all.Wait()
			assert.LessOrEqual(t, most, roomBytes+workers/8*ownBytes, "seed %d", seed)
			assert.Greater(t, most, roomBytes/2, "the room is used")
		})
	}
}

// told is an API server that tells how many bytes its answers have.
type told int

func (n told) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{ContentLength: int64(n), Body: http.NoBody}, nil
}

func TestASmallStepWaitsForNoOtherWork(t *testing.T) {
	room := NewRoom()
	require.NoError(t, room.free.Acquire(t.Context(), roomBytes))
	ran := 0
	_, err := room.Do(t.Context(), 2000, 0, func(context.Context) { ran++ })
	require.NoError(t, err)
	require.NoError(t, room.Decode(t.Context(), ownBytes, func() { ran++ }))
	assert.Equal(t, 2, ran)
}

func TestAStepWhoseContextEndsBeforeItsTurnDoesNotRun(t *testing.T) {
	room := NewRoom()
	require.NoError(t, room.free.Acquire(t.Context(), roomBytes))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := room.Do(ctx, ownBytes, 0, func(context.Context) { t.Error("it ran") })
	require.ErrorContains(t, err, "waiting for the memory to decode objects")
	require.ErrorIs(t, err, context.Canceled)
	require.Error(t, room.Decode(ctx, ownBytes+1, func() { t.Error("it ran") }))
}
