package apiserver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// DefaultKeep is how many changes of each resource a Server remembers at least.
const DefaultKeep = 1000

// Options are how a Server is; the zero value has nothing but what is built in.
type Options struct {
	// Resources are those of definitions.
	Resources []Resource
	// Webhook converts between versions wherever a definition says that a webhook does. It gets the reviews that it would
	// get by the network.
	Webhook http.Handler
	// Keep is how many changes of each resource are remembered, for watches that go on; 0 means DefaultKeep.
	Keep int
	// Clock is the clock; nil means the real one.
	Clock clock.WithDelayedExecution
}

// Server is an API server in memory.
type Server struct {
	keep  int
	clock clock.WithDelayedExecution

	mu      sync.Mutex
	version uint64
	uids    uint64
	tables  map[schema.GroupResource]*table
	// alive are the objects that exist, and owned those that have owners, by the UID of the owner.
	alive map[types.UID]place
	owned map[types.UID]map[place]bool
	// loose are UIDs of owners that do not exist, going those of objects that began to go, and waiting those of objects
	// that go after what they own.
	loose, going []types.UID
	waiting      map[types.UID]bool
	// ending are the namespaces that are being deleted.
	ending map[string]bool
}

// place is where an object is.
type place struct {
	table *table
	key   key
}

// New returns a Server with the namespaces that every API server has.
func New(o Options) *Server {
	s := &Server{
		keep: o.Keep, clock: o.Clock, tables: map[schema.GroupResource]*table{},
		alive: map[types.UID]place{}, owned: map[types.UID]map[place]bool{}, ending: map[string]bool{},
		waiting: map[types.UID]bool{},
	}
	if s.keep == 0 {
		s.keep = DefaultKeep
	}
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	for _, r := range append(BuiltIn(), o.Resources...) {
		r.webhook = o.Webhook
		s.tables[r.GroupResource()] = newTable(&r)
	}
	namespaces := s.tables[schema.GroupResource{Resource: "namespaces"}]
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
		one := object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
		s.insert(namespaces, one)
	}
	return s
}

// Transport returns a client's way to the server, as the user with the groups.
func (s *Server) Transport(user string, groups ...string) http.RoundTripper {
	return &transport{server: s, user: user, groups: groups}
}

// transport answers requests itself.
type transport struct {
	server *Server
	user   string
	groups []string
}

// request is one request.
type request struct {
	context.Context //nolint:containedctx // it is that of one request, as in net/http
	target

	http   *http.Request
	user   string
	groups []string
	table  *table
	// resource is that of the table, in the version of the request.
	resource *Resource
	body     []byte
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if closed := r.Body.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return nil, fmt.Errorf("reading the body of a request: %w", err)
		}
	}
	return t.server.serve(&request{Context: r.Context(), http: r, user: t.user, groups: t.groups, body: body}), nil
}

// serve answers a request.
func (s *Server) serve(r *request) *http.Response {
	about, ok := readTarget(r.http)
	if !ok {
		return s.serveOther(r)
	}
	r.target = about
	if review := s.review(r); review != nil {
		return review
	}
	table := s.tables[schema.GroupResource{Group: about.APIGroup, Resource: about.Resource}]
	if table == nil || !table.resource.serves(about.APIVersion) ||
		table.resource.Namespaced && about.Namespace == "" && about.Name != "" {
		return s.answer(r, http.StatusNotFound, []byte("404 page not found\n"))
	}
	r.table, r.resource = table, table.resource.in(about.APIVersion)
	switch about.Verb {
	case "watch":
		return s.serveWatch(r)
	case "list":
		return s.serveList(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	code, result, err := s.do(r)
	if err != nil {
		return s.answerError(r, err)
	}
	switch result := result.(type) {
	case *stored:
		body, err := table.resource.bytes(result, r.form())
		if err != nil {
			return s.answerError(r, err)
		}
		return s.answer(r, code, body)
	case []byte:
		return s.answer(r, code, result)
	}
	return s.answer(r, code, encode(result))
}

// do reads or writes one object; the result is a *stored, JSON, or what is to be encoded.
func (s *Server) do(r *request) (int, any, error) {
	switch {
	case r.Subresource == "token":
		return s.token(r)
	case r.Subresource != "" && !r.hasSubresource():
		return 0, nil, apierrors.NewNotFound(r.group(), r.Name+"/"+r.Subresource)
	}
	switch r.Verb {
	case "get":
		one, err := s.find(r)
		return http.StatusOK, one, err
	case "create":
		return s.create(r)
	case "update", "patch":
		if r.Verb == "patch" && !r.patches() {
			return 0, nil, unsupported(r.http.Header.Get("Content-Type"))
		}
		one, err := s.update(r)
		return http.StatusOK, one, err
	case "delete":
		return s.delete(r)
	case "deletecollection":
		return s.deleteAll(r)
	}
	return 0, nil, apierrors.NewMethodNotSupported(r.group(), r.Verb)
}

// hasSubresource reports whether the resource has the subresource of the request.
func (r *request) hasSubresource() bool {
	return r.Subresource == "status" && r.table.resource.Status ||
		r.Subresource == "approval" && r.table.resource.Resource == "certificatesigningrequests"
}

// group names the resource in errors.
func (r *request) group() schema.GroupResource {
	return r.table.resource.GroupResource()
}

// find returns the object that a request names.
func (s *Server) find(r *request) (*stored, error) {
	one := r.table.objects[key{r.Namespace, r.Name}]
	if one == nil {
		return nil, apierrors.NewNotFound(r.group(), r.Name)
	}
	return one, nil
}

// answer makes the answer to a request.
func (s *Server) answer(r *request, code int, body []byte) *http.Response {
	kind := "application/json"
	if !bytes.HasPrefix(body, []byte("{")) {
		kind = "text/plain"
	}
	return s.respond(r, code, kind, int64(len(body)), io.NopCloser(bytes.NewReader(body)))
}

func (s *Server) respond(r *request, code int, kind string, length int64, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)),
		Proto: "HTTP/2.0", ProtoMajor: 2, Request: r.http, ContentLength: length, Body: body,
		Header: http.Header{"Content-Type": {kind}, "Date": {s.clock.Now().UTC().Format(http.TimeFormat)}},
	}
}

// answerError makes the answer for an error.
func (s *Server) answerError(r *request, err error) *http.Response {
	status := statusOf(err)
	return s.answer(r, int(status.Code), encode(status))
}

// statusOf returns what an API server says about an error.
func statusOf(err error) metav1.Status {
	var status metav1.Status
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	} else {
		status = apierrors.NewInternalError(err).Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	return status
}

// form returns how the client wants objects.
func (r *request) form() form {
	return form{r.APIVersion, strings.Contains(r.http.Header.Get("Accept"), "as=PartialObjectMetadata")}
}
