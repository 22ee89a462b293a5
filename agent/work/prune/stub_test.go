package prune

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/spokelet/spokelet/agent/work/spoke"
)

// stub is an API server that has a few objects by their paths, and remembers what it was asked.
type stub struct {
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	asked   []string
	// answer may answer a request in another way; nil and zero leave it to the stub.
	answer func(method, path string) (int, any)
}

// newStub starts a stub and returns it with a client for it.
func newStub(t *testing.T, objects map[string]*unstructured.Unstructured) (*stub, spoke.Client) {
	t.Helper()
	s := &stub{objects: objects}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := spoke.NewClient(&rest.Config{Host: server.URL}, server.Client())
	require.NoError(t, err)
	return s, client
}

// faulty returns a client that panics over the object bad and finds no other.
func faulty(t *testing.T) spoke.Client {
	t.Helper()
	client, err := spoke.NewClient(&rest.Config{Host: "http://spoke.example"}, &http.Client{Transport: defect{}})
	require.NoError(t, err)
	return client
}

// defect panics over each request about the object bad, and answers that others do not exist.
type defect struct{}

func (defect) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/bad") {
		panic("the defect")
	}
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(answer).Encode(apiRefusal(http.StatusNotFound, metav1.StatusReasonNotFound))
	return answer.Result(), nil
}

// apiRefusal returns the answer of an API server that refuses something.
func apiRefusal(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code,
		Reason: reason, Message: "refused: " + string(reason),
	}
}

// requests returns what the stub was asked since the last time.
func (s *stub) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.asked = nil }()
	slices.Sort(s.asked)
	return s.asked
}

// ServeHTTP answers one request.
func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := r.Method + " " + r.URL.Path
	if r.URL.Query().Has("dryRun") {
		asked += " dry"
	}
	s.asked = append(s.asked, asked)
	code, answer := 0, any(nil)
	if s.answer != nil {
		code, answer = s.answer(r.Method, r.URL.Path)
	}
	if code == 0 {
		code, answer = s.serve(r, strings.HasSuffix(asked, " dry"))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// serve answers as an API server would.
func (s *stub) serve(r *http.Request, dry bool) (int, any) {
	path := r.URL.Path
	live := s.objects[path]
	sent := &unstructured.Unstructured{Object: map[string]any{}}
	if r.Method != http.MethodGet {
		_ = json.NewDecoder(r.Body).Decode(&sent.Object)
	}
	if r.Method == http.MethodPost {
		path += "/" + sent.GetName()
		if s.objects[path] != nil {
			return http.StatusConflict, apiRefusal(http.StatusConflict, metav1.StatusReasonAlreadyExists)
		}
		sent.SetUID("made")
		sent.SetResourceVersion("100")
		if !dry {
			s.objects[path] = sent
		}
		return http.StatusCreated, sent.Object
	}
	if live == nil {
		return http.StatusNotFound, apiRefusal(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
	switch r.Method {
	case http.MethodDelete:
		uid, _, _ := unstructured.NestedString(sent.Object, "preconditions", "uid")
		version, _, _ := unstructured.NestedString(sent.Object, "preconditions", "resourceVersion")
		if (uid != "" && uid != string(live.GetUID())) || (version != "" && version != live.GetResourceVersion()) {
			return http.StatusConflict, apiRefusal(http.StatusConflict, metav1.StatusReasonConflict)
		}
		if !dry {
			delete(s.objects, path)
		}
		return http.StatusOK, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		}
	case http.MethodPatch:
		if refs, found, _ := unstructured.NestedSlice(sent.Object, "metadata", "ownerReferences"); found {
			_ = unstructured.SetNestedSlice(live.Object, refs, "metadata", "ownerReferences")
		}
	case http.MethodPut:
		s.objects[path], live = sent, sent
	}
	return http.StatusOK, live.Object
}
