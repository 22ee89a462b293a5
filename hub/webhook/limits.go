package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/utils/clock"
)

const (
	// maxBody is the size limit of a review, in bytes; smallBody is that of nearly all: an API server converts stored
	// objects one by one.
	maxBody, smallBody = 32 << 20, 4 << 20
	// maxAdmission is the size limit of an admission review, which contains at most two objects.
	maxAdmission = 7 << 20
	// expansion is how many bytes a byte of a review takes at most, and how much larger than the review its answer may be;
	// smallAnswer is allowed to every review.
	expansion, smallAnswer = 4, 1 << 20
	// smallBudget and largeBudget are the bytes that small and large reviews take together; one of the largest takes all.
	// largeBudget is apart, so that few large reviews do not stop the small ones.
	smallBudget, largeBudget = smallBody * expansion * 4, maxBody * expansion
	// maxWaiting is how many reviews wait for their turn; further ones are refused.
	maxWaiting = 1000
	// firstByte and perMiB are how long a client may take to send a review, which arrives at once from an API server.
	firstByte, perMiB = 5 * time.Second, time.Second
)

// limits bound what all clients of the server together can take. The server is open to every pod of the cluster where
// no NetworkPolicy says otherwise, and Kubernetes has its API servers present no credential to it.
type limits struct {
	small, large *semaphore.Weighted
	// objects has the bytes of all objects that are being converted, so that one of the largest is converted alone.
	objects *semaphore.Weighted
	waiting atomic.Int64
	clock   clock.PassiveClock
}

func newLimits() *limits {
	return &limits{
		small: semaphore.NewWeighted(smallBudget), large: semaphore.NewWeighted(largeBudget),
		objects: semaphore.NewWeighted(maxObject), clock: clock.RealClock{},
	}
}

// bound returns a handler of requests of a limited size, which waits for its turn before it reads the request, and as
// long as its client waits.
func (l *limits) bound(most int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size := r.ContentLength
		if size < 0 {
			size = most
		}
		if size > most {
			http.Error(w, fmt.Sprintf("the review is larger than %d bytes", most), http.StatusRequestEntityTooLarge)
			return
		}
		turn := l.small
		if size > smallBody {
			turn = l.large
		}
		defer l.waiting.Add(-1)
		if l.waiting.Add(1) > maxWaiting {
			http.Error(w, "too many reviews are waiting", http.StatusServiceUnavailable)
			return
		}
		weight := max(size*expansion, 1)
		if err := turn.Acquire(r.Context(), weight); err != nil {
			return // The client is gone.
		}
		defer turn.Release(weight)
		deadline := l.clock.Now().Add(firstByte + time.Duration(size>>20)*perMiB)
		if err := http.NewResponseController(w).SetReadDeadline(deadline); err != nil &&
			!errors.Is(err, http.ErrNotSupported) {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, max(size, 1))
		next.ServeHTTP(w, r)
	})
}

// sane returns a handler that refuses a body which no API server sends, before anything decodes it.
func (l *limits) sane(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, fmt.Sprintf("reading the review: %v", err), http.StatusBadRequest)
			return
		}
		weight, err := weighValues(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		if err := l.objects.Acquire(r.Context(), weight); err != nil {
			return // The client is gone.
		}
		defer l.objects.Release(weight)
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

const (
	// maxObject, maxContainers and maxValues bound one object: its bytes, its objects and lists, and what they contain. An
	// API server takes requests of 3 MiB and stores 1.5 MiB. The numbers bound what the decoded object takes: the smallest
	// objects of JSON need two bytes, and decoded some hundred.
	maxObject, maxContainers, maxValues = 4 << 20, 200_000, 1_000_000
)

// weigh returns the share of maxObject that an object takes while it is converted. It refuses an object that no API
// server stores, before it is decoded.
func weigh(raw []byte) (int64, error) {
	if len(raw) > maxObject {
		return maxObject, fmt.Errorf("it has %d bytes, more than %d", len(raw), maxObject)
	}
	return weighValues(raw)
}

// weighValues does the same by the number of values alone.
func weighValues(raw []byte) (int64, error) {
	containers, values := 0, 0
	for inText, i := false, 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{', c == '[':
			containers++
		case c == ',':
			values++
		}
	}
	if containers > maxContainers || values > maxValues {
		return maxObject, fmt.Errorf("it consists of more than %d objects and lists or %d values", maxContainers, maxValues)
	}
	most := max(len(raw), containers*(maxObject/maxContainers), values*(maxObject/maxValues), 1)
	return int64(min(most, maxObject)), nil
}
