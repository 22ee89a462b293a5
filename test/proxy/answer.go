package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// longestBurst is the most requests of a client that are refused in a row.
	longestBurst = 8
	// kept is how many earlier answers to a list are kept, and largest the size of one that is.
	kept, largest = 4, 4 << 20
)

// errLost is the error that a client gets when its answer is lost.
var errLost = errors.New("the connection ended before the answer")

// answer is an earlier answer to a list.
type answer struct {
	version, kind string
	body          []byte
}

// Over returns a transport that lies about what another one answers. client names who sends a request.
func (l *Liar) Over(to http.RoundTripper, client func(*http.Request) string) http.RoundTripper {
	return &lying{Liar: l, to: to, client: client}
}

// lying is a transport that lies.
type lying struct {
	*Liar

	to     http.RoundTripper
	client func(*http.Request) string
}

// asked is a request and what is lied about it.
type asked struct {
	*http.Request

	client string
	lies   Lies
	random *rand.Rand
	// honest is closed when the liar becomes honest, turn when it lies in another way.
	honest, turn <-chan struct{}
	// list names the request when it is a list whose answer is kept.
	list string
}

// RoundTrip implements http.RoundTripper.
func (l *lying) RoundTrip(r *http.Request) (*http.Response, error) {
	a := l.draw(r, l.client(r))
	query := r.URL.Query()
	if query.Get("sendInitialEvents") != "" {
		return a.refuse(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "lists are not streamed here"), nil
	}
	if away := l.unreached(a); away != nil {
		return away, nil
	}
	if refusal := l.refuses(a); refusal != nil {
		return refusal, nil
	}
	if a.lies.Stall > 0 && !isWatch(r) && hits(a.random, a.lies.Stall) {
		return nil, l.stall(a)
	}
	lost := writes(r) && hits(a.random, a.lies.Lose)
	if r.Method == http.MethodGet && !isWatch(r) && query.Get("continue") == "" {
		a.list = a.client + " " + r.Header.Get("Accept") + " " + unversioned(r)
		if old := l.stale(a); old != nil {
			return old, nil
		}
		if earlier := l.earlier(a); earlier != nil {
			return earlier, nil
		}
	}
	response, err := l.to.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	l.note(r, response.StatusCode, a.client)
	if lost {
		l.tell("lose")
		return nil, errors.Join(errLost, response.Body.Close())
	}
	if a.lies.Date != 0 {
		response.Header.Set("Date", time.Now().Add(a.lies.Date).UTC().Format(http.TimeFormat))
	}
	switch {
	case response.StatusCode != http.StatusOK:
	case isWatch(r):
		response.Body = l.stream(r.Context(), response.Body, a)
	case a.list != "":
		return response, l.keep(response, a)
	}
	return response, nil
}

// draw draws what is lied about a request.
func (l *Liar) draw(r *http.Request, client string) *asked {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client + " " + r.Method + " " + r.URL.Path
	l.drawn[key]++
	sum := fnv.New64a()
	fmt.Fprint(sum, key, l.drawn[key])
	return &asked{
		Request: r, client: client, lies: l.lies, honest: l.honest, turn: l.turn,
		random: rand.New(rand.NewPCG(l.lies.Seed, sum.Sum64())),
	}
}

// isWatch reports whether a request begins a watch.
func isWatch(r *http.Request) bool {
	watches, err := strconv.ParseBool(r.URL.Query().Get("watch"))
	return err == nil && watches
}

// unversioned is the request of a list without what it says about versions.
func unversioned(r *http.Request) string {
	query := r.URL.Query()
	query.Del("resourceVersion")
	query.Del("resourceVersionMatch")
	return r.URL.Path + "?" + query.Encode()
}

// refuses returns an error for a request, and for the next ones of a burst that began; nil means an answer.
func (l *Liar) refuses(a *asked) *http.Response {
	l.mu.Lock()
	left := l.bursts[a.client]
	if left > 0 {
		l.bursts[a.client]--
	} else if hits(a.random, a.lies.Refuse/longestBurst*2) {
		left = 1 + a.random.IntN(longestBurst)
		l.bursts[a.client] = left - 1
	}
	l.mu.Unlock()
	if left == 0 {
		return nil
	}
	l.tell("refuse")
	switch a.random.IntN(3) {
	case 0:
		response := a.refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests")
		if a.lies.RetryAfter > 0 {
			response.Header.Set("Retry-After", strconv.Itoa(a.lies.RetryAfter))
		}
		return response
	case 1:
		return a.refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: leader changed")
	}
	return a.refuse(
		http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the API server is overloaded")
}

// unreached returns the answer of a proxy that does not reach the API server; nil means that it does.
func (l *Liar) unreached(a *asked) *http.Response {
	if a.lies.Away == 0 || !hits(a.random, a.lies.Away) {
		return nil
	}
	l.tell("away")
	response := a.respond(http.StatusServiceUnavailable, "text/plain", []byte("no healthy upstream\n"))
	response.Header.Set("Date", time.Now().Add(a.lies.Astray).UTC().Format(http.TimeFormat))
	return response
}

// refuse returns an error as that of an API server.
func (a *asked) refuse(code int, reason metav1.StatusReason, message string) *http.Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Message: message, Reason: reason, Code: int32(code),
	}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // a Status can be encoded
	}
	return a.respond(code, "application/json", body)
}

// respond returns an answer that no API server gave. A transport has to close the body of the request.
func (a *asked) respond(code int, kind string, body []byte) *http.Response {
	if a.Body != nil {
		_ = a.Body.Close()
	}
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Request: a.Request,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {kind}},
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}
}

// stale returns an earlier answer to a list, if the request allows an API server to give it; nil means a new one.
func (l *Liar) stale(a *asked) *http.Response {
	query := a.URL.Query()
	version := query.Get("resourceVersion")
	if version == "" || query.Get("resourceVersionMatch") == "Exact" || !hits(a.random, a.lies.Stale) {
		return nil
	}
	l.mu.Lock()
	var may []answer
	for _, one := range l.lists[a.list] {
		if version == "0" || !older(one.version, version) {
			may = append(may, one)
		}
	}
	l.mu.Unlock()
	if len(may) == 0 {
		return nil
	}
	l.tell("stale")
	one := may[a.random.IntN(len(may))]
	return a.respond(http.StatusOK, one.kind, one.body)
}

// older reports whether the version a is older than b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// keep keeps the answer to a list for later.
func (l *Liar) keep(response *http.Response, a *asked) error {
	if response.ContentLength > largest {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	_ = response.Body.Close()
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	response.Header.Del("Transfer-Encoding")
	var read struct {
		metav1.ListMeta `json:"metadata"`

		Items *json.RawMessage `json:"items"`
	}
	if json.Unmarshal(body, &read) != nil || read.Items == nil || read.Continue != "" || read.ResourceVersion == "" {
		return nil // not a whole list
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	have := l.lists[a.list]
	if len(have) > 0 && have[len(have)-1].version == read.ResourceVersion {
		return nil
	}
	have = append(have, answer{version: read.ResourceVersion, kind: response.Header.Get("Content-Type"), body: body})
	l.lists[a.list] = have[max(0, len(have)-kept):]
	return nil
}
