package virtual

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/test/apiserver"
)

// fault answers some requests of a program in another way than the API server does.
type fault struct {
	// on reports whether a request is one of them; nil means all.
	on func(*http.Request) bool
	// do answers it, perhaps by the API server. A fault that is over, whose channel is closed, answers nothing any more.
	do   func(r *http.Request, to http.RoundTripper) (*http.Response, error)
	over chan struct{}
}

// suffer lets a link have a fault until end is called.
func (l *link) suffer(f *fault) (end func()) {
	f.over = make(chan struct{})
	l.mu.Lock()
	l.faults = append(slices.Clone(l.faults), f)
	l.mu.Unlock()
	return func() {
		l.mu.Lock()
		l.faults = slices.DeleteFunc(slices.Clone(l.faults), func(other *fault) bool { return other == f })
		l.mu.Unlock()
		close(f.over)
	}
}

// faulty puts the faults before a transport. The caller holds the lock.
func (l *link) faulty(to http.RoundTripper) http.RoundTripper {
	for _, f := range l.faults {
		to = faultyTransport{fault: f, to: to}
	}
	return to
}

// faultyTransport is a transport with a fault.
type faultyTransport struct {
	*fault

	to http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f faultyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.on != nil && !f.on(r) {
		return f.to.RoundTrip(r)
	}
	return f.do(r, f.to)
}

// refuses is a fault that answers with a status.
func refuses(code int, reason metav1.StatusReason, message string, on func(*http.Request) bool) *fault {
	return &fault{on: on, do: func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		return statusAnswer(r, code, metav1.Status{Reason: reason, Message: message}), nil
	}}
}

// notServed is a fault of an API server that does not serve a kind at all.
func notServed(on func(*http.Request) bool) *fault {
	return &fault{on: on, do: func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		return answerWith(r, http.StatusNotFound, "text/plain", []byte("404 page not found\n")), nil
	}}
}

// hangs is a fault that answers only when it is over, after a delay at most; zero means no other end.
func hangs(most time.Duration, on func(*http.Request) bool) *fault {
	f := &fault{on: on}
	f.do = func(r *http.Request, to http.RoundTripper) (*http.Response, error) {
		var late <-chan time.Time
		if most > 0 {
			timer := time.NewTimer(most)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-late:
		case <-f.over:
		}
		return to.RoundTrip(r)
	}
	return f
}

// emptyList is a fault of a list that shows nothing, of the newest version.
func emptyList(on func(*http.Request) bool) *fault {
	f := &fault{on: on}
	f.do = func(r *http.Request, to http.RoundTripper) (*http.Response, error) {
		verb, _, _ := about(r)
		if r.URL.Query().Get("sendInitialEvents") != "" {
			return noStreams(r), nil
		}
		if verb == "watch" { // it shows nothing, either
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case <-f.over:
				return nil, errCut
			}
		}
		response, err := to.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusOK {
			return response, err
		}
		var list map[string]any
		err = json.NewDecoder(response.Body).Decode(&list)
		_ = response.Body.Close()
		if err != nil {
			return nil, err
		}
		list["items"] = []any{}
		body, err := json.Marshal(list)
		if err != nil {
			return nil, err
		}
		return answerWith(r, http.StatusOK, "application/json", body), nil
	}
	return f
}

// showsEarlier is a fault of an API server that shows some kinds as they were in a version: lists that may come from a
// cache show that one, and watches nothing, before it is over.
func showsEarlier(version string, on func(*http.Request) bool) *fault {
	f := &fault{on: func(r *http.Request) bool {
		verb, _, _ := about(r)
		return (verb == "list" || verb == "watch") && on(r)
	}}
	f.do = func(r *http.Request, to http.RoundTripper) (*http.Response, error) {
		query := r.URL.Query()
		verb, _, _ := about(r)
		switch {
		case query.Get("sendInitialEvents") != "":
			return noStreams(r), nil
		case verb == "watch":
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case <-f.over:
				return nil, errCut
			}
		case query.Get("resourceVersion") != "0":
			return to.RoundTrip(r)
		}
		query.Set("resourceVersion", version)
		query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
		r = r.Clone(r.Context())
		r.URL.RawQuery = query.Encode()
		return to.RoundTrip(r)
	}
	return f
}

// noStreams answers who wants a list as a stream.
func noStreams(r *http.Request) *http.Response {
	return statusAnswer(r, http.StatusUnprocessableEntity, metav1.Status{
		Reason: metav1.StatusReasonInvalid, Message: "lists are not streamed here",
	})
}

// dates is a fault of an agent whose clock is off: what it says that changed now in the status of its cluster, changed
// earlier or later by its clock.
func dates(by time.Duration) *fault {
	return &fault{
		on: concerns("managedclusters/status", "update", "patch"),
		do: func(r *http.Request, to http.RoundTripper) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if err != nil {
				return nil, err
			}
			body = transition.ReplaceAllFunc(body, func(found []byte) []byte {
				at, err := time.Parse(time.RFC3339, string(transition.FindSubmatch(found)[1]))
				if err != nil || time.Since(at).Abs() > time.Minute { // it was said before
					return found
				}
				return fmt.Appendf(nil, `"lastTransitionTime":%q`, at.Add(by).Format(time.RFC3339))
			})
			r = r.Clone(r.Context())
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			return to.RoundTrip(r)
		},
	}
}

var transition = regexp.MustCompile(`"lastTransitionTime":"([^"]+)"`)

// statusAnswer is an answer with a Status.
func statusAnswer(r *http.Request, code int, status metav1.Status) *http.Response {
	status.Kind, status.APIVersion, status.Status, status.Code = "Status", "v1", metav1.StatusFailure, int32(code)
	body, _ := json.Marshal(status)
	return answerWith(r, code, "application/json", body)
}

// answerWith is an answer that no API server gave.
func answerWith(r *http.Request, code int, kind string, body []byte) *http.Response {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Request: r,
		Proto: "HTTP/2.0", ProtoMajor: 2, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{"Content-Type": {kind}, "Date": {time.Now().UTC().Format(http.TimeFormat)}},
	}
}

// about returns the verb of a request and what it is about: the resource with its subresource, and the name with its
// namespace.
func about(r *http.Request) (verb, resource, name string) {
	verb, resource = apiserver.VerbOf(r), apiserver.ResourceOf(r)
	_, path, found := strings.Cut(r.URL.Path, "/"+resource)
	if resource == "" || !found {
		return verb, resource, ""
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) > 1 {
		resource += "/" + parts[1]
	}
	return verb, resource, parts[0]
}

// concerns returns whether a request has one of some verbs and is about a resource; no verbs mean all.
func concerns(resource string, verbs ...string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		verb, what, _ := about(r)
		return what == resource && (len(verbs) == 0 || slices.Contains(verbs, verb))
	}
}

// writesStatus reports whether a request writes the status of a work.
func writesStatus(r *http.Request) bool {
	return concerns("manifestworks/status", "update", "patch")(r)
}
