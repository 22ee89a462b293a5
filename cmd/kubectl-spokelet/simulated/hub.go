package simulated

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Hub serves lists of objects that are encoded once, as an API server of a hub does.
type Hub struct {
	lists map[string][]object

	mutex    sync.Mutex
	silent   bool
	denied   []string
	requests int
	bytes    int
}

// object is an encoded object, with what selects it.
type object struct {
	namespace, name string
	labels          map[string]string
	raw             []byte
}

const (
	clusters    = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
	addOns      = "/apis/addon.open-cluster-management.io/v1beta1/managedclusteraddons"
	definitions = "/apis/addon.open-cluster-management.io/v1beta1/clustermanagementaddons"
	decisions   = "/apis/cluster.open-cluster-management.io/v1beta1/placementdecisions"
	works       = "/apis/work.open-cluster-management.io/v1/manifestworks"
	requests    = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	leases      = "/apis/coordination.k8s.io/v1/leases"
	events      = "/api/v1/events"
	templates   = "/apis/addon.open-cluster-management.io/v1alpha1/addontemplates"
	configs     = "/apis/addon.open-cluster-management.io/v1alpha1/addondeploymentconfigs"
	placements  = "/apis/cluster.open-cluster-management.io/v1beta1/placements"
)

// Reset forgets what was asked.
func (h *Hub) Reset() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.requests, h.bytes = 0, 0
}

// Asked returns how many requests there were, and how many bytes the answers had.
func (h *Hub) Asked() (requests, size int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.requests, h.bytes
}

// Become makes the hub have the objects of another one.
func (h *Hub) Become(other *Hub) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.lists = other.lists
}

// Silence makes the hub answer no request, or answer again.
func (h *Hub) Silence(silent bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.silent = silent
}

// Deny makes the hub refuse to list some resources, by their plurals.
func (h *Hub) Deny(plurals ...string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.denied = plurals
}

// ServeHTTP implements http.Handler.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mutex.Lock()
	lists, denied, silent := h.lists, h.denied, h.silent
	h.mutex.Unlock()
	body, status := answer(lists, r)
	switch plural := path.Base(r.URL.Path); {
	case silent:
		body, status = refusal("ServiceUnavailable", http.StatusServiceUnavailable)
	case slices.Contains(denied, plural):
		body, status = refusal("Forbidden", http.StatusForbidden)
	}
	h.mutex.Lock()
	h.requests, h.bytes = h.requests+1, h.bytes+len(body)
	h.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // A client that went away needs no answer.
}

// refusal is the answer of an API server that refuses a request.
func refusal(reason string, code int) ([]byte, int) {
	return fmt.Appendf(nil, `{"kind": "Status", "status": "Failure", "reason": %q, "message": %[1]q, "code": %d}`,
		reason, code), code
}

// answer returns the body of an answer and its status.
func answer(lists map[string][]object, r *http.Request) ([]byte, int) {
	list, namespace := r.URL.Path, ""
	if before, after, found := strings.Cut(list, "/namespaces/"); found {
		var rest string
		namespace, rest, _ = strings.Cut(after, "/")
		list = before + "/" + rest
	}
	switch list {
	case "/version":
		return []byte(`{"gitVersion": "v1.37.2"}`), http.StatusOK
	case "/apis/addon.open-cluster-management.io":
		return []byte(`{"versions": [{"version": "v1alpha1"}, {"version": "v1beta1"}]}`), http.StatusOK
	}
	all, known := lists[list]
	if !known {
		return refusal("NotFound", http.StatusNotFound)
	}
	query := r.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit <= 0 {
		limit = len(all)
	}
	at, _ := strconv.Atoi(query.Get("continue")) // The first page has none.
	var items [][]byte
	more := ""
	for ; at < len(all); at++ {
		if len(items) == limit {
			more = strconv.Itoa(at)
			break
		}
		if all[at].selected(namespace, query.Get("fieldSelector"), query.Get("labelSelector")) {
			items = append(items, all[at].raw)
		}
	}
	joined := bytes.Join(items, []byte(","))
	return fmt.Appendf(nil, `{"kind":"List","metadata":{"continue":%q},"items":[%s]}`, more, joined), http.StatusOK
}

// selected reports whether an object is asked for.
func (o object) selected(namespace, fields, labels string) bool {
	if namespace != "" && o.namespace != namespace || fields != "" && fields != "metadata.name="+o.name {
		return false
	}
	for term := range strings.SplitSeq(labels, ",") {
		if key, value, found := strings.Cut(term, "="); found && o.labels[key] != value {
			return false
		}
	}
	return true
}

// add adds an object to a list.
func (h *Hub) add(list string, o object, content map[string]any) error {
	content["metadata"] = map[string]any{
		"namespace": o.namespace, "name": o.name, "labels": o.labels,
		"uid": "7d0f6c1e-0000-4000-8000-" + o.name, "generation": 1,
		"resourceVersion": "1", "creationTimestamp": began, "managedFields": managed(),
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding %s/%s: %w", o.namespace, o.name, err)
	}
	o.raw = raw
	h.lists[list] = append(h.lists[list], o)
	return nil
}

// managed are managed fields of the size that three managers leave on an add-on.
func managed() []any {
	var all []any
	for _, manager := range []string{"spokelet-hub", "spokelet", "kubectl-client-side-apply"} {
		fields := map[string]any{}
		for i := range 12 {
			key := fmt.Sprintf(`k:{"type":"Condition%d"}`, i)
			fields[key] = map[string]any{".": map[string]any{}, "f:status": map[string]any{}}
		}
		all = append(all, map[string]any{
			"manager": manager, "operation": "Update", "apiVersion": "v1", "time": began, "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:status": map[string]any{"f:conditions": fields}},
		})
	}
	return all
}

// Template returns the AddOnTemplate of a name; nil for none.
func (h *Hub) Template(name string) []byte {
	for _, o := range h.lists[templates] {
		if o.name == name {
			return o.raw
		}
	}
	return nil
}
