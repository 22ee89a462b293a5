package work_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/agent/work"
	"github.com/spokelet/spokelet/agent/work/latency"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/watch"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

var (
	plane  *suite.Plane     // one for the package
	scheme = suite.Scheme() // the types that the tests speak
)

func TestMain(m *testing.M) {
	suite.Main(m, func(t suite.T) {
		docs := manifests.SpokeCRDs()
		for _, doc := range manifests.CRDs() {
			if strings.Contains(string(doc), "work.open-cluster-management.io") {
				docs = append(docs, doc)
			}
		}
		plane = suite.Start(t, sandbox.Options{Name: "work"}, docs, manifests.Klusterlet())
	})
}

// requests counts what a client sends, watches aside.
type requests struct {
	mu   sync.Mutex
	sent []string
}

// wrap counts what goes through a transport.
func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		watch := req.URL.Query().Get("watch") == "true"
		accept := req.Header.Get("Accept")
		list := strings.Contains(accept, "PartialObjectMetadataList") || (req.Method == http.MethodGet &&
			strings.HasPrefix(accept, "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata"))
		if !watch && !list {
			r.mu.Lock()
			r.sent = append(r.sent, req.Method+" "+req.URL.RequestURI())
			r.mu.Unlock()
		}
		return next.RoundTrip(req)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// since returns what was sent after the first n requests, discovery aside, and the lists with which caches begin, which
// API servers since 1.34 send with the watch.
func (r *requests) since(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.sent[n:]), func(line string) bool {
		_, path, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, "GET ") && strings.HasSuffix(path, "manifestworks?limit=500") {
			return true
		}
		path, _, _ = strings.Cut(path, "?")
		return path == "/api" || path == "/apis" || path == "/api/v1" ||
			(strings.HasPrefix(path, "/apis/") && strings.Count(path, "/") <= 3)
	})
}

func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sent)
}

// writes keeps the lines of requests that are not reads.
func writes(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(line, "GET ") })
}

// agent is a running work agent.
type agent struct {
	hub, spoke *requests
	stop       func()
	log        *suite.Log
}

// settings are what a test may choose about its agent.
type settings struct {
	hub     *rest.Config
	spoke   *rest.Config
	hubHash string
	agentID string
	grace   time.Duration
	// rawFeedback is RawFeedback of the agent, maxWatches its MaxWatches.
	rawFeedback bool
	maxWatches  int
	// latency is Latency of the agent.
	latency *latency.Log
	// fault answers a request to the spoke with an error when it returns true.
	fault func(*http.Request) bool
	// hubFault answers a request to the hub with an error unless it returns nil.
	hubFault func(*http.Request) error
	// patience is DeletionTimeout of the agent, events its RecordEvents.
	patience time.Duration
	events   bool
	// cache is the directory for copies of works; empty keeps none. hubPatience is HubPatience of the agent, short unless a
	// test says otherwise.
	cache       string
	hubPatience time.Duration
	// clock is Clock of the agent, metrics its Metrics.
	clock   clock.PassiveClock
	metrics *prometheus.Registry
}

// env holds what one test works with: a cluster of its own and an administrator of both sides.
type env struct {
	*testing.T
	client.Client
	cluster  string
	settings settings
}

// newEnv makes the hub namespace of a cluster, and a namespace of the same name on the spoke, which is the same.
func newEnv(t *testing.T) *env {
	t.Helper()
	e := &env{T: t, Client: plane.Client, cluster: plane.Namespace(t, t.Name())}
	spoke := plane.AccountConfig(t, names.NamespaceAgent, names.ServiceAccountAgent)
	e.settings = settings{
		hub: e.hubUser(), spoke: spoke,
		hubHash: work.HubHash("https://hub.example/" + e.cluster), agentID: "agent-" + e.cluster,
		hubPatience: time.Millisecond,
	}
	return e
}

// hubUser is the agent of the cluster on the hub, with the rights that a hub gives it (docs/reference/work.md, "Access
// to the hub").
func (e *env) hubUser() *rest.Config {
	e.Helper()
	group := "system:open-cluster-management:" + e.cluster
	e.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: "work"}, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"work.open-cluster-management.io"}, Resources: []string{"manifestworks"},
			Verbs: []string{"get", "list", "watch", "update", "patch"},
		},
		{
			APIGroups: []string{"work.open-cluster-management.io"}, Resources: []string{"manifestworks/status"},
			Verbs: []string{"patch", "update"},
		},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
	}})
	e.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: "work"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "work"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: group}},
	})
	user, err := plane.User(group+":agent", group)
	require.NoError(e, err)
	user.QPS = -1
	return user
}

// start runs an agent until it is stopped or the test ends.
func (e *env) start() *agent {
	e.Helper()
	a := &agent{hub: &requests{}, spoke: &requests{}}
	hubConfig, spokeConfig := rest.CopyConfig(e.settings.hub), rest.CopyConfig(e.settings.spoke)
	hubConfig.Wrap(a.hub.wrap)
	spokeConfig.Wrap(a.spoke.wrap)
	if fault := e.settings.fault; fault != nil {
		spokeConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if fault(req) {
					return nil, errors.New("the wire is cut")
				}
				return next.RoundTrip(req)
			})
		})
	}
	if fault := e.settings.hubFault; fault != nil {
		hubConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if err := fault(req); err != nil {
					return nil, err
				}
				return next.RoundTrip(req)
			})
		})
	}
	newCluster := func(config *rest.Config, o client.Object, by cache.ByObject) cluster.Cluster {
		c, err := cluster.New(config, func(options *cluster.Options) {
			options.Scheme = scheme
			// As in the agent: what a cache gives out is shared and must not be changed.
			by.Transform, by.UnsafeDisableDeepCopy = work.Transform, ptr.To(true)
			options.Cache.ByObject = map[client.Object]cache.ByObject{o: by}
			options.Cache.ReaderFailOnMissingInformer, options.Cache.NewInformer = true, watch.NewInformer
		})
		require.NoError(e, err)
		return c
	}
	hub := newCluster(hubConfig, &workv1.ManifestWork{}, cache.ByObject{
		Namespaces: map[string]cache.Config{e.cluster: {}},
	})
	spoke := newCluster(spokeConfig, &workv1.AppliedManifestWork{}, cache.ByObject{})
	mgr, err := ctrl.NewManager(plane.Admin(), ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	require.NoError(e, err)
	require.NoError(e, mgr.Add(hub))
	require.NoError(e, mgr.Add(spoke))
	var counted prometheus.Registerer
	if e.settings.metrics != nil {
		counted = e.settings.metrics
	}
	require.NoError(e, (&work.Reconciler{
		Clock: e.settings.clock, Metrics: counted,
		Cache: e.openCache(), HubPatience: e.settings.hubPatience,
		Cluster: e.cluster, AgentID: e.settings.agentID, HubHash: e.settings.hubHash, Hub: hub, Spoke: spoke,
		EvictionGrace: e.settings.grace, DeletionTimeout: e.settings.patience, RecordEvents: e.settings.events,
		RawFeedback: e.settings.rawFeedback, MaxWatches: e.settings.maxWatches, Latency: e.settings.latency,
	}).SetupWithManager(mgr))
	program := suite.StartProgram(e, "the work agent", mgr.Start)
	a.stop, a.log = program.Stop, program.Log
	return a
}

// work makes a ManifestWork with the manifests, each an object or YAML text.
func (e *env) work(name string, manifests ...any) *workv1.ManifestWork {
	e.Helper()
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: name}}
	w.Spec.Workload.Manifests = e.manifests(manifests...)
	return w
}

// manifests encodes the manifests of a work.
func (e *env) manifests(manifests ...any) []workv1.Manifest {
	e.Helper()
	var list []workv1.Manifest
	for _, m := range manifests {
		var raw []byte
		var err error
		if text, ok := m.(string); ok {
			raw, err = yaml.YAMLToJSON([]byte(text))
		} else {
			raw, err = json.Marshal(m)
		}
		require.NoError(e, err)
		list = append(list, workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return list
}

// configMap is a ConfigMap manifest in the namespace of the test.
func (e *env) configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.cluster, Name: name},
		Data:       data,
	}
}

// create creates an object.
func (e *env) create(o client.Object) {
	e.Helper()
	require.NoError(e, e.Create(e.Context(), o))
}

// edit changes the spec of a work, again after a conflict.
func (e *env) edit(w *workv1.ManifestWork, change func(*workv1.ManifestWork)) {
	e.Helper()
	suite.Eventually(e, func() error {
		if err := e.Get(e.Context(), client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		change(w)
		return e.Update(e.Context(), w)
	})
}

// get reads an object into o and reports whether it exists.
func (e *env) get(o client.Object, namespace, name string) bool {
	return e.Get(e.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o) == nil
}

// eventually waits until holds; a failure shows the works of the cluster and what is listed as applied.
func (e *env) eventually(what string, holds func() bool) {
	e.Helper()
	suite.Eventually(e, suite.True(what, holds, e.state))
}

// state holds what the works of the cluster and their AppliedManifestWorks say.
func (e *env) state() string {
	var works workv1.ManifestWorkList
	if err := e.List(e.Context(), &works, client.InNamespace(e.cluster)); err != nil {
		return err.Error()
	}
	text := ""
	for i := range works.Items {
		w := &works.Items[i]
		status, _ := yaml.Marshal(w.Status)
		text += fmt.Sprintf("\nwork %s of generation %d, deleted %v:\n%s", w.Name, w.Generation, w.DeletionTimestamp, status)
		applied := &workv1.AppliedManifestWork{}
		if e.Get(e.Context(), client.ObjectKey{Name: e.settings.hubHash + "-" + w.Name}, applied) == nil {
			text += fmt.Sprintf("\napplied: %v", appliedNames(applied))
		}
	}
	return text
}

// is waits until the work has a condition with the status, at its present generation, and returns it.
func (e *env) is(w *workv1.ManifestWork, kind string, status metav1.ConditionStatus) *metav1.Condition {
	e.Helper()
	var found *metav1.Condition
	e.eventually(fmt.Sprintf("%s of %s should be %s", kind, w.Name, status), func() bool {
		if e.Get(e.Context(), client.ObjectKeyFromObject(w), w) != nil {
			return false
		}
		found = meta.FindStatusCondition(w.Status.Conditions, kind)
		return found != nil && found.Status == status && found.ObservedGeneration == w.Generation
	})
	return found
}

// settled waits until the work is applied and available.
func (e *env) settled(w *workv1.ManifestWork) {
	e.Helper()
	e.is(w, workv1.WorkApplied, metav1.ConditionTrue)
	e.is(w, workv1.WorkAvailable, metav1.ConditionTrue)
}

// manifestCondition returns a condition of a manifest of the work.
func manifestCondition(w *workv1.ManifestWork, ordinal int, kind string) metav1.Condition {
	if ordinal >= len(w.Status.ResourceStatus.Manifests) {
		return metav1.Condition{}
	}
	found := meta.FindStatusCondition(w.Status.ResourceStatus.Manifests[ordinal].Conditions, kind)
	if found == nil {
		return metav1.Condition{}
	}
	return *found
}

// applied reads the AppliedManifestWork of the work w.
func (e *env) applied() *workv1.AppliedManifestWork {
	e.Helper()
	a := &workv1.AppliedManifestWork{}
	require.NoError(e, e.Get(e.Context(), client.ObjectKey{Name: e.settings.hubHash + "-w"}, a))
	return a
}

// appliedNames lists the applied resources as "resource/name".
func appliedNames(a *workv1.AppliedManifestWork) []string {
	var list []string
	for _, entry := range a.Status.AppliedResources {
		list = append(list, entry.Resource+"/"+entry.Name)
	}
	return list
}

// quiet waits until an agent has sent nothing for a while and returns how much it has sent to the spoke and the hub.
func (e *env) quiet(a *agent) (spoke, hub int) {
	e.Helper()
	counts := suite.Quiet(e, 500*time.Millisecond, func() [2]int { return [2]int{a.spoke.count(), a.hub.count()} })
	return counts[0], counts[1]
}

// unstructuredOf parses YAML.
func (e *env) unstructuredOf(text string, args ...any) *unstructured.Unstructured {
	e.Helper()
	o := &unstructured.Unstructured{}
	require.NoError(e, yaml.Unmarshal(fmt.Appendf(nil, text, args...), &o.Object))
	return o
}
