package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// hub serves lists of objects that are encoded once.
type hub struct {
	lists map[string][]object

	mutex    sync.Mutex
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

// reset forgets what was asked.
func (h *hub) reset() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.requests, h.bytes = 0, 0
}

// asked returns how many requests there were, and how many bytes the answers had.
func (h *hub) asked() (requests, size int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.requests, h.bytes
}

// ServeHTTP implements http.Handler.
func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, status := h.answer(r)
	h.mutex.Lock()
	h.requests, h.bytes = h.requests+1, h.bytes+len(body)
	h.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // A client that went away needs no answer.
}

// answer returns the body of an answer and its status.
func (h *hub) answer(r *http.Request) ([]byte, int) {
	path, namespace := r.URL.Path, ""
	if before, after, found := strings.Cut(path, "/namespaces/"); found {
		var rest string
		namespace, rest, _ = strings.Cut(after, "/")
		path = before + "/" + rest
	}
	switch path {
	case "/version":
		return []byte(`{"gitVersion": "v1.37.2"}`), http.StatusOK
	case "/apis/addon.open-cluster-management.io":
		return []byte(`{"versions": [{"version": "v1alpha1"}, {"version": "v1beta1"}]}`), http.StatusOK
	}
	all, known := h.lists[path]
	if !known {
		return []byte(`{"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}`), http.StatusNotFound
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
func (h *hub) add(list string, o object, content map[string]any) error {
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
