package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/facts"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/version"
)

// noon is the time of the tests.
func noon() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC) }

// hub is a server that answers like the API server of a hub.
type hub struct {
	// lists are objects by the path of their list.
	lists map[string][]map[string]any
	// documents are other answers, and logs those about pods, by their paths.
	documents map[string]any
	logs      map[string]string
	// forbidden are the resources that the user may not read.
	forbidden map[string]bool
	// prefix is the path below which a proxy serves it; empty for none.
	prefix string
	// pages is how many objects a page has at most; zero means as many as are asked for.
	pages int
	// written are the writes, as their path and body; denied refuses all of them, and may are the rights of the user.
	written []string
	denied  bool
	// changed refuses all writes because the object changed.
	changed bool
	may     func(resource string) bool
	// fails says with which status a request is refused; zero for none, and StatusOK for an answer without content. nil
	// refuses none.
	fails func(*http.Request) int
	// without reports that no hub manager looks at policies.
	without bool
	// watched is called when a client watches; nil for nothing.
	watched func()
	// asked are the requests, accepted the types that they ask for, and queries the rest of their addresses.
	asked, accepted, queries []string
	mutex                    sync.Mutex
	// unconverted reports that the webhook that converts add-ons does not answer.
	unconverted bool
}

// ServeHTTP implements http.Handler.
func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mutex.Lock()
	h.asked = append(h.asked, r.Method+" "+r.URL.Path)
	h.accepted, h.queries = append(h.accepted, r.Header.Get("Accept")), append(h.queries, r.URL.RawQuery)
	h.mutex.Unlock()
	write := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	refuse := func(status int, reason string) {
		write(status, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status, "message": reason,
		})
	}
	if h.fails != nil {
		switch status := h.fails(r); status {
		case 0:
		case http.StatusOK:
			return
		default:
			refuse(status, map[int]string{
				http.StatusForbidden: "Forbidden", http.StatusUnauthorized: "Unauthorized", http.StatusGone: "Expired", http.StatusServiceUnavailable: "ServiceUnavailable",
			}[status])
			return
		}
	}
	path, namespace := strings.TrimPrefix(r.URL.Path, h.prefix), ""
	if before, after, found := strings.Cut(path, "/namespaces/"); found {
		var rest string
		namespace, rest, _ = strings.Cut(after, "/")
		path = before + "/" + rest
	}
	document, isDocument := h.documents[strings.TrimPrefix(r.URL.Path, h.prefix)]
	log, isLog := h.logs[r.URL.Path]
	plural := path[strings.LastIndex(path, "/")+1:]
	switch all, known := h.lists[path]; {
	case r.Method == http.MethodPatch && h.denied:
		refuse(http.StatusForbidden, "Forbidden")
	case r.Method == http.MethodPatch && h.changed:
		refuse(http.StatusConflict, "Conflict")
	case r.Method == http.MethodPatch:
		body, _ := io.ReadAll(r.Body)
		h.written = append(h.written, r.URL.RequestURI()+" "+string(body))
		write(http.StatusOK, map[string]any{})
	case r.Method == http.MethodPost && plural == "addonpolicies":
		body, _ := io.ReadAll(r.Body)
		h.written = append(h.written, r.URL.RequestURI()+" "+string(body))
		made := map[string]any{}
		_ = json.Unmarshal(body, &made)
		made["status"] = map[string]any{}
		if !h.without { // A hub manager sees it at once.
			made["status"] = map[string]any{"observedGeneration": 1}
		}
		h.lists[path] = append(h.lists[path], made)
		write(http.StatusCreated, map[string]any{})
	case r.Method == http.MethodPost && plural == "selfsubjectaccessreviews":
		var review authorizationv1.SelfSubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.Allowed = h.may(review.Spec.ResourceAttributes.Resource)
		write(http.StatusCreated, review)
	case !strings.HasPrefix(r.URL.Path, h.prefix):
		refuse(http.StatusBadGateway, "NoSuchProxy")
	case r.Method != http.MethodGet:
		refuse(http.StatusMethodNotAllowed, "MethodNotAllowed")
	case h.forbidden["pods/log"] && strings.HasSuffix(path, "/log"):
		refuse(http.StatusForbidden, "Forbidden")
	case isLog:
		_, _ = w.Write([]byte(log))
	case isDocument:
		write(http.StatusOK, document)
	case path == "/version":
		write(http.StatusOK, map[string]any{"gitVersion": "v1.37.2"})
	case path == "/apis/addon.open-cluster-management.io":
		write(http.StatusOK, map[string]any{"versions": []any{
			map[string]any{"version": "v1alpha1"}, map[string]any{"version": "v1beta1"},
		}})
	case h.unconverted && strings.Contains(path, "/v1beta1/managedclusteraddons"):
		write(http.StatusInternalServerError, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError", "code": 500,
			"message": "conversion webhook for addon.open-cluster-management.io/v1alpha1 failed: connection refused",
		})
	case h.forbidden[plural]:
		refuse(http.StatusForbidden, "Forbidden")
	case r.URL.Query().Get("watch") != "":
		h.watch(w, r, all)
	case !known:
		refuse(http.StatusNotFound, "NotFound")
	default:
		items := []map[string]any{}
		for _, o := range all {
			if h.matches(o, namespace, r) {
				items = append(items, o)
			}
		}
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		if h.pages > 0 {
			limit = h.pages
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		to, head := min(from+limit, len(items)), map[string]any{}
		if to < len(items) {
			head["continue"] = strconv.Itoa(to)
		}
		write(http.StatusOK, map[string]any{"kind": "List", "metadata": head, "items": items[from:to]})
	}
}

// watch sends the objects as they are, until the client goes.
func (h *hub) watch(w http.ResponseWriter, r *http.Request, all []map[string]any) {
	for _, o := range all {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": o})
	}
	if flusher, is := w.(http.Flusher); is {
		flusher.Flush()
	}
	if h.watched != nil {
		h.watched()
	}
	<-r.Context().Done()
}

// matches reports whether an object is asked for.
func (h *hub) matches(o map[string]any, namespace string, r *http.Request) bool {
	metadata, _ := o["metadata"].(map[string]any)
	if namespace != "" && metadata["namespace"] != namespace {
		return false
	}
	for term := range strings.SplitSeq(r.URL.Query().Get("fieldSelector"), ",") {
		path, value, found := strings.Cut(term, "=")
		if at, _, _ := unstructured.NestedString(o, strings.Split(path, ".")...); found && at != value {
			return false
		}
	}
	set := labels.Set{}
	of, _ := metadata["labels"].(map[string]any)
	for key, value := range of {
		set[key] = fmt.Sprint(value)
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	return err == nil && selector.Matches(set)
}

const (
	pathClusters    = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
	pathAddOns      = "/apis/addon.open-cluster-management.io/v1beta1/managedclusteraddons"
	pathDefinitions = "/apis/addon.open-cluster-management.io/v1beta1/clustermanagementaddons"
	pathDecisions   = "/apis/cluster.open-cluster-management.io/v1beta1/placementdecisions"
	pathWorks       = "/apis/work.open-cluster-management.io/v1/manifestworks"
	pathRequests    = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	pathLeases      = "/apis/coordination.k8s.io/v1/leases"
	pathEvents      = "/api/v1/events"
	pathPolicies    = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
	pathBindings    = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
	pathKinds       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
)

// condition is a condition that began some minutes before noon.
func condition(kind, status, reason, text string, before int) map[string]any {
	return map[string]any{
		"type": kind, "status": status, "reason": reason, "message": text, "observedGeneration": 1,
		"lastTransitionTime": noon().Add(-time.Duration(before) * time.Minute).Format(time.RFC3339),
	}
}

// of is an object with conditions.
func of(namespace, name string, conditions ...map[string]any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{
			"namespace": namespace, "name": name, "generation": 1,
			"creationTimestamp": noon().Add(-48 * time.Hour).Format(time.RFC3339), "labels": map[string]any{},
		},
		"spec": map[string]any{}, "status": map[string]any{"conditions": conditions},
	}
}

// cluster is an accepted cluster.
func cluster(name string, conditions ...map[string]any) map[string]any {
	c := of("", name, append([]map[string]any{
		condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted", "", 2000),
		condition("ManagedClusterJoined", "True", "ManagedClusterJoined", "", 2000),
	}, conditions...)...)
	c["spec"] = map[string]any{"hubAcceptsClient": true}
	return c
}

// alive is the condition of a cluster that is available.
func alive() map[string]any {
	return condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable", "", 1000)
}

// labelled puts labels on an object.
func labelled(o map[string]any, labels map[string]any) map[string]any {
	if metadata, is := o["metadata"].(map[string]any); is {
		metadata["labels"] = labels
	}
	return o
}

// addOn is an add-on of which all is well but what further conditions say.
func addOn(namespace, name string, further ...map[string]any) map[string]any {
	conditions := []map[string]any{
		condition("RegistrationApplied", "True", "SetPermissionApplied", "", 1000),
		condition("ClusterCertificateRotated", "True", "ClientCertificateUpdated", "", 900),
		condition("ManifestApplied", "True", "AddonManifestApplied", "", 900),
		condition("Configured", "True", "ConfigurationsConfigured", "", 900),
	}
	said := map[any]bool{}
	for _, c := range further {
		said[c["type"]] = true
	}
	var all []map[string]any
	for _, c := range conditions {
		if !said[c["type"]] {
			all = append(all, c)
		}
	}
	all = append(all, further...)
	if !said["Available"] {
		all = append(all, condition("Available", "True", "ManagedClusterAddOnLeaseUpdated", "", 800))
	}
	return of(namespace, name, all...)
}

// work is the work of an add-on.
func work(namespace, addOn string, conditions ...map[string]any) map[string]any {
	if conditions == nil {
		conditions = []map[string]any{
			condition("Applied", "True", "AppliedManifestWorkComplete", "", 800),
			condition("Available", "True", "ResourcesAvailable", "", 800),
		}
	}
	w := labelled(of(namespace, "addon-"+addOn+"-deploy-0", conditions...), map[string]any{names.LabelAddonName: addOn})
	w["spec"] = map[string]any{"workload": map[string]any{"manifests": []any{
		map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "agent", "namespace": addOn},
			"spec": map[string]any{"password": "hunter2"},
		},
	}}}
	return w
}

// governed adds what a hub has besides clusters and add-ons: a hub manager and its policies.
func governed(t *testing.T, h *hub) *hub {
	t.Helper()
	manager := of(names.NamespaceHub, "spokelet-hub")
	manager["spec"] = map[string]any{"replicas": 2, "template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"image": "registry.local:5000/spokelet-hub:" + version.String()}},
	}}}
	manager["status"] = map[string]any{"readyReplicas": 2}
	h.lists[pathDeployments] = []map[string]any{manager}
	leader := of(names.NamespaceHub, "spokelet-hub")
	meta, is := leader["metadata"].(map[string]any)
	require.True(t, is)
	meta["labels"] = map[string]any{names.LabelVersion: version.Label()}
	leader["spec"] = map[string]any{
		"holderIdentity": "spokelet-hub-7d_uid", "leaseDurationSeconds": 15,
		"renewTime": noon().Add(-5 * time.Second).Format(metav1.RFC3339Micro),
	}
	h.lists[pathLeases] = append(h.lists[pathLeases], leader)
	wanted, err := facts.Policies()
	require.NoError(t, err)
	h.lists[pathPolicies], h.lists[pathBindings] = nil, nil
	for _, name := range wanted {
		binding := of("", name)
		binding["spec"] = map[string]any{"policyName": name, "validationActions": []any{"Deny"}}
		h.lists[pathPolicies] = append(h.lists[pathPolicies], of("", name))
		h.lists[pathBindings] = append(h.lists[pathBindings], binding)
	}
	definition := of("", "managedclusteraddons.addon.open-cluster-management.io")
	definition["spec"] = map[string]any{
		"versions": []any{
			map[string]any{"name": "v1alpha1", "served": true, "storage": true},
			map[string]any{"name": "v1beta1", "served": true, "storage": false},
		},
		"conversion": map[string]any{"webhook": map[string]any{"clientConfig": map[string]any{
			"caBundle": authority(t, noon().Add(89*24*time.Hour)),
		}}},
	}
	h.lists[pathKinds] = []map[string]any{definition}
	return h
}

// authority is the certificate of an authority in PEM, which ends at an instant.
func authority(t *testing.T, ends time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: noon().Add(-time.Hour), NotAfter: ends}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
}

// shop is a hub with clusters in trouble: five of forty cannot pull an image, one is silent, one waits for a person.
func shop() *hub {
	h := &hub{lists: map[string][]map[string]any{
		pathLeases: {}, pathDecisions: {}, pathEvents: happened(), pathDeployments: {}, pathPolicies: {}, pathBindings: {},
		pathKinds: {},
	}, forbidden: map[string]bool{}}
	for i := 1; i <= 40; i++ {
		name := fmt.Sprintf("store-%03d", i)
		h.lists[pathClusters] = append(h.lists[pathClusters], cluster(name, alive()))
		logs := addOn(name, "logs")
		if i <= 5 {
			logs = addOn(name, "logs",
				condition("addon.spokelet.io/WorkloadsReady", "False", "WorkloadNotReady",
					"Deployment logs/agent is not ready. Pod logs/agent-6c9f-x2: image registry.local/logs:1.10 of container agent cannot "+
						"be pulled (ImagePullBackOff): manifest unknown", 38),
				condition("Available", "False", "ProbeUnavailable", "Deployment logs/agent is not ready", 38))
		}
		h.lists[pathAddOns] = append(h.lists[pathAddOns], logs, addOn(name, "metrics"))
		h.lists[pathWorks] = append(h.lists[pathWorks], work(name, "logs"), work(name, "metrics"))
	}
	h.lists[pathClusters] = append(h.lists[pathClusters],
		cluster("store-114", condition("ManagedClusterConditionAvailable", "Unknown", "ManagedClusterLeaseUpdateStopped",
			"Registration agent stopped updating its lease.", 252)),
		of("", "store-201"))
	h.lists[pathAddOns] = append(h.lists[pathAddOns], addOn("store-114", "logs",
		condition("Available", "Unknown", "ManagedClusterLeaseUpdateStopped", "Registration agent stopped updating its lease.", 252)))
	page := labelled(of("add-ons", "stores-decision-1"), map[string]any{names.LabelPlacement: "stores"})
	var decisions []any
	for i := 1; i <= 40; i++ {
		decisions = append(decisions, map[string]any{"clusterName": fmt.Sprintf("store-%03d", i)})
	}
	page["status"] = map[string]any{"decisions": decisions}
	h.lists[pathDecisions] = append(h.lists[pathDecisions], page)
	h.lists[pathPlacements] = append(h.lists[pathPlacements], of("add-ons", "stores",
		condition("PlacementSatisfied", "True", "AllDecisionsScheduled", "", 2000)))
	for _, name := range []string{"logs", "metrics"} {
		d := of("", name)
		d["spec"] = map[string]any{"installStrategy": map[string]any{
			"type": "Placements", "placements": []any{map[string]any{"name": "stores", "namespace": "add-ons"}},
		}}
		h.lists[pathDefinitions] = append(h.lists[pathDefinitions], d)
	}
	request := labelled(of("", "store-201-abcde"), map[string]any{names.LabelClusterName: "store-201"})
	request["spec"] = map[string]any{
		"signerName": "kubernetes.io/kube-apiserver-client", "username": "bootstrap", "request": "c2VjcmV0",
	}
	request["status"] = map[string]any{}
	h.lists[pathRequests] = append(h.lists[pathRequests], request)
	return h
}

// outcome holds the output of a command and its exit status.
type outcome struct {
	out, errs string
	status    int
}

// plays runs a command line on a hub.
func plays(t *testing.T, h *hub, args ...string) outcome {
	t.Helper()
	return playsUntil(t.Context(), t, h, args...)
}

// playsUntil runs a command line on a hub until the context ends.
func playsUntil(ctx context.Context, t *testing.T, h *hub, args ...string) outcome {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(kubeconfig(server.URL+h.prefix)), 0o600))
	got := runUntil(ctx, t, append([]string{"--kubeconfig", file}, args...)...)
	got.out = strings.ReplaceAll(got.out, server.URL, "https://hub.example")
	got.errs = strings.ReplaceAll(got.errs, server.URL, "https://hub.example")
	return got
}

// kubeconfig is one for an address.
func kubeconfig(address string) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}],
"clusters": [{"name": "c", "cluster": {"server": %q}}]}`, address)
}

// run runs a command line.
func run(t *testing.T, args ...string) outcome {
	t.Helper()
	return runUntil(t.Context(), t, args...)
}

// runUntil runs a command line until the context ends.
func runUntil(ctx context.Context, t *testing.T, args ...string) outcome {
	t.Helper()
	return runIn(ctx, t, map[string]string{"COLUMNS": "110", "LANG": "C.UTF-8"}, args...)
}

// runIn is runUntil in an environment.
func runIn(ctx context.Context, t *testing.T, environment map[string]string, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	p := &Plugin{
		Streams:     genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs},
		Environment: func(name string) string { return environment[name] },
		Now:         noon, Pause: pause,
	}
	p.Init()
	status := p.Run(ctx, args)
	return outcome{out: out.String(), errs: errs.String(), status: status}
}
