package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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

// answer is an earlier answer to a list.
type answer struct {
	version, kind string
	body          []byte
}

// asked is what is lied about a request, for the functions that see its answer.
type asked struct {
	lies   Lies
	random *rand.Rand
	// honest is closed when the proxy becomes honest, turn when it lies in another way.
	honest, turn <-chan struct{}
	// lose is set when the answer is to be lost, list names the request when it is a list whose answer is kept.
	lose bool
	list string
}

type askedKey struct{}

// answer serves one request.
func (p *Proxy) answer(w http.ResponseWriter, r *http.Request) {
	a := p.draw(r)
	query := r.URL.Query()
	isWatch := query.Get("watch") == "true" || query.Get("watch") == "1"
	switch {
	case query.Get("sendInitialEvents") != "":
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "lists are not streamed here")
		return
	case p.refuses(w, r, a):
		return
	case writes(r) && hits(a.random, a.lies.Lose):
		a.lose = true
		p.tell("lose")
	case r.Method == http.MethodGet && !isWatch && query.Get("continue") == "":
		a.list = user(r) + " " + r.Header.Get("Accept") + " " + unversioned(r)
		if p.stale(w, r, a) {
			return
		}
	}
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), askedKey{}, a)))
}

// unversioned is the request of a list without what it says about versions.
func unversioned(r *http.Request) string {
	query := r.URL.Query()
	query.Del("resourceVersion")
	query.Del("resourceVersionMatch")
	return r.URL.Path + "?" + query.Encode()
}

// refuses answers a request with an error, and the next ones of a burst that began.
func (p *Proxy) refuses(w http.ResponseWriter, r *http.Request, a *asked) bool {
	who := user(r)
	p.mu.Lock()
	left := p.bursts[who]
	if left > 0 {
		p.bursts[who]--
	} else if hits(a.random, a.lies.Refuse/longestBurst*2) {
		left = 1 + a.random.IntN(longestBurst)
		p.bursts[who] = left - 1
	}
	p.mu.Unlock()
	if left == 0 {
		return false
	}
	p.tell("refuse")
	switch a.random.IntN(3) {
	case 0:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests")
	case 1:
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: leader changed")
	default:
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the API server is overloaded")
	}
	return true
}

// refuse answers with an error as an API server does.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Message: message, Reason: reason, Code: int32(code),
	}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // a Status can be encoded
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// stale answers a list with an earlier answer, if the request allows an API server to do so.
func (p *Proxy) stale(w http.ResponseWriter, r *http.Request, a *asked) bool {
	query := r.URL.Query()
	version := query.Get("resourceVersion")
	if version == "" || query.Get("resourceVersionMatch") == "Exact" || !hits(a.random, a.lies.Stale) {
		return false
	}
	p.mu.Lock()
	var may []answer
	for _, one := range p.lists[a.list] {
		if version == "0" || !older(one.version, version) {
			may = append(may, one)
		}
	}
	p.mu.Unlock()
	if len(may) == 0 {
		return false
	}
	p.tell("stale")
	one := may[a.random.IntN(len(may))]
	w.Header().Set("Content-Type", one.kind)
	_, _ = w.Write(one.body)
	return true
}

// older reports whether the version a is older than b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// modify lies about an answer of the API server.
func (p *Proxy) modify(response *http.Response) error {
	a, ok := response.Request.Context().Value(askedKey{}).(*asked)
	if !ok {
		return nil
	}
	if a.lies.Date != 0 {
		response.Header.Set("Date", time.Now().Add(a.lies.Date).UTC().Format(http.TimeFormat))
	}
	query := response.Request.URL.Query()
	switch {
	case a.lose:
		_ = response.Body.Close()
		panic(http.ErrAbortHandler)
	case response.StatusCode != http.StatusOK:
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		response.Body = p.stream(response.Request.Context(), response.Body, a)
	case a.list != "":
		return p.keep(response, a)
	}
	return nil
}

// keep keeps the answer to a list for later.
func (p *Proxy) keep(response *http.Response, a *asked) error {
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
	p.mu.Lock()
	defer p.mu.Unlock()
	have := p.lists[a.list]
	if len(have) > 0 && have[len(have)-1].version == read.ResourceVersion {
		return nil
	}
	have = append(have, answer{version: read.ResourceVersion, kind: response.Header.Get("Content-Type"), body: body})
	p.lists[a.list] = have[max(0, len(have)-kept):]
	return nil
}
