package virtual

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/token"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/apiserver"
)

// shape is how a cluster with works is, and where its agent runs.
type shape struct {
	name string
	// hosted is set where the agent runs on another cluster, alone where another program of the agent does the works.
	hosted, alone bool
	// hubs is set where the agent knows a second hub, which has not accepted the cluster.
	hubs bool
	// odd is set for a cluster with other settings: tokens for add-ons, no grace for works that vanish, no right to watch
	// namespaces, and an API server whose clock is behind.
	odd bool
	// works is how many works people write.
	works int
}

// member is a cluster with works.
type member struct {
	*Cluster
	shape

	// worker is the program that does the works where another one does not; nil elsewhere.
	worker *program
	// host is the cluster where a hosted agent runs, toHost the way to it, and kubeconfig the file by which the agent
	// reaches its own cluster.
	host       *apiserver.Server
	toHost     *link
	kubeconfig string
	// other is a second hub.
	other *apiserver.Server
	model *model
}

const (
	// behind is by how much the clock of an odd API server is behind.
	behind = 20 * time.Minute
	// earlier is by how much the hub of a cluster whose works are done by a program of their own is behind that program.
	earlier = 4 * time.Hour
	// otherHub is the host of a second hub.
	otherHub = "hub2"
	// vanishGrace is how long the objects of works that vanish stay.
	vanishGrace = 10 * time.Minute
)

// lateClock is a clock that is behind.
type lateClock struct{ clock.RealClock }

// Now implements clock.Clock.
func (lateClock) Now() time.Time { return time.Now().Add(-behind) }

// addMember prepares a cluster with works and its agent.
func (w *World) addMember(s shape) (*member, error) {
	kinds, err := apiserver.Defined(manifests.SpokeCRDs())
	if err != nil {
		return nil, err
	}
	options := apiserver.Options{Resources: kinds}
	if s.odd {
		options.Clock = lateClock{}
	}
	c := &Cluster{Name: s.name, server: apiserver.New(options)}
	if c.admin, err = w.adminOf(c.server, kinds); err != nil {
		return nil, err
	}
	m := &member{Cluster: c, shape: s, model: newModel()}
	agents, home := c.admin, c.server
	if s.hosted {
		m.host = apiserver.New(apiserver.Options{})
		if agents, err = w.adminOf(m.host, nil); err != nil {
			return nil, err
		}
		home = m.host
		if err := create(w.ctx, c.admin, spaces()...); err != nil {
			return nil, err
		}
	}
	first, err := kubeconfig(hubHost)
	if err != nil {
		return nil, err
	}
	second, err := kubeconfig(otherHub)
	if err != nil {
		return nil, err
	}
	if err := create(w.ctx, agents, append(spaces(), bootstrapSecret(names.SecretBootstrap, first),
		bootstrapSecret("second", second))...); err != nil {
		return nil, fmt.Errorf("preparing cluster %s: %w", s.name, err)
	}
	user := accountOf(names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	account := accountOf(names.NamespaceAgent, names.ServiceAccountAgent)
	c.toHub = newLink("the agent of "+s.name+" on the hub", w.hub.Transport(user), w.judge.loops(s.name))
	c.toOwn = newLink("the agent of "+s.name+" on its cluster", c.server.Transport(account), w.judge.loops(s.name))
	m.toHost = newLink("the agent of "+s.name+" where it runs", home.Transport(account), w.judge.loops(s.name))
	way := router{hubHost: c.toHub, s.name + ".own": c.toOwn, s.name + ".host": m.toHost}
	if s.hubs {
		if err := w.addOtherHub(m, way); err != nil {
			return nil, err
		}
	}
	if err := w.addPrograms(m, way); err != nil {
		return nil, err
	}
	m.suffersAlways(w)
	w.clusters, w.byName[s.name] = append(w.clusters, c), c
	return m, nil
}

// spaces are the namespaces that a cluster with an agent has.
func spaces() []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceAgent}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceAgentAddon}},
	}
}

// bootstrapSecret is the Secret with a bootstrap kubeconfig.
func bootstrapSecret(name string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceAgent, Name: name},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	}
}

// addOtherHub gives the agent of a cluster a second hub, which knows the cluster and has not accepted it.
func (w *World) addOtherHub(m *member, way router) error {
	kinds, err := apiserver.Defined(manifests.CRDs())
	if err != nil {
		return err
	}
	m.other = apiserver.New(apiserver.Options{Resources: kinds})
	admin, err := w.adminOf(m.other, kinds)
	if err != nil {
		return err
	}
	if err := create(w.ctx, admin, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}); err != nil {
		return err
	}
	user := accountOf(names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	way[otherHub] = newLink("the agent of "+m.Name+" on the other hub", m.other.Transport(user), w.judge.loops(m.Name))
	return nil
}

// addPrograms prepares the programs of the agent of a cluster.
func (w *World) addPrograms(m *member, way router) error {
	own, err := w.writeKubeconfig(m.Name + ".own")
	if err != nil {
		return err
	}
	c := agent.DefaultConfig()
	c.ClusterName, c.Namespace, c.Kubeconfig = m.Name, names.NamespaceAgent, own
	c.LeaderElect, c.GiveBackMemory, c.PollFiles = false, false, true
	c.EvictionGracePeriod = vanishGrace
	c.WrapTransport = func(http.RoundTripper) http.RoundTripper { return way }
	if m.hosted {
		if c.Kubeconfig, err = w.writeKubeconfig(m.Name + ".host"); err != nil {
			return err
		}
		m.kubeconfig, c.SpokeKubeconfig = own, own
	} else {
		c.WorkCacheDir = filepath.Join(w.options.Dir, m.Name+".copies")
	}
	if m.hubs {
		c.Gates.MultipleHubs = true
		c.BootstrapKubeconfigs = []string{"secret:" + names.SecretBootstrap, "secret:second"}
	}
	if m.odd {
		c.AddonDriver, c.EvictionGracePeriod = token.Driver, 0
	}
	program := func(name string, c agent.Config) *program {
		return &program{
			name: name, log: w.options.Log, turn: w.turn, failed: func(err error) { w.judge.ended(m.Name, err) },
			run: func(ctx context.Context) error { return agent.Run(ctx, c) },
		}
	}
	if m.alone {
		c.HubKubeconfigDir = filepath.Join(w.options.Dir, m.Name+".credential")
		worker := c
		c.Duties, worker.Duties = agent.Duties{Registration: true}, agent.Duties{Works: true}
		m.worker = program(m.Name+"-works", worker)
	}
	m.agent = program(m.Name, c)
	for _, l := range m.links() {
		l.halt = func() {
			m.agent.halt()
			if m.worker != nil {
				m.worker.halt()
			}
		}
	}
	return nil
}

// suffersAlways holds what is always wrong with a cluster, and what its API server in memory does not do.
func (m *member) suffersAlways(w *World) {
	m.toOwn.suffer(m.applies())
	m.toOwn.suffer(m.escalates())
	if m.odd {
		m.toOwn.suffer(refuses(http.StatusForbidden, metav1.StatusReasonForbidden, "namespaces is forbidden: the user "+
			"cannot list or watch resource namespaces", concerns("namespaces", "list", "watch")))
	}
	if m.alone {
		w.skews[m.Name] = -earlier
		m.toHub.suffer(dated(-earlier, nil))
	}
}

// dated is a fault of which the Date of answers is off.
func dated(by time.Duration, on func(*http.Request) bool) *fault {
	return &fault{on: on, do: func(r *http.Request, to http.RoundTripper) (*http.Response, error) {
		response, err := to.RoundTrip(r)
		if err == nil {
			response.Header.Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
		}
		return response, err
	}}
}

// applies plays server-side apply of Namespaces, which the API server in memory does not do: it merges labels.
func (m *member) applies() *fault {
	on := func(r *http.Request) bool {
		applied := strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
		return applied && concerns("namespaces", "patch")(r)
	}
	return &fault{on: on, do: func(r *http.Request, to http.RoundTripper) (*http.Response, error) {
		var wanted corev1.Namespace
		if err := json.NewDecoder(r.Body).Decode(&wanted); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		now := &corev1.Namespace{}
		err := m.admin.Get(r.Context(), client.ObjectKeyFromObject(&wanted), now)
		if apierrors.IsNotFound(err) {
			err = m.admin.Create(r.Context(), &wanted)
		} else if err == nil {
			maps.Copy(now.Labels, wanted.Labels)
			err = m.admin.Update(r.Context(), now)
		}
		if err != nil {
			return nil, err
		}
		read := r.Clone(r.Context())
		read.Method, read.Body, read.URL.RawQuery = http.MethodGet, nil, ""
		return to.RoundTrip(read)
	}}
}

// escalates plays the check of RBAC that a user who binds a role has its rights: there is no role to compare with while
// it does not exist.
func (m *member) escalates() *fault {
	on := func(r *http.Request) bool {
		return concerns("rolebindings", "create")(r) && r.Header.Get("Impersonate-User") != ""
	}
	return &fault{on: on, do: func(r *http.Request, to http.RoundTripper) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_ = r.Body.Close()
		var binding rbacv1.RoleBinding
		if err := json.Unmarshal(body, &binding); err != nil {
			return nil, err
		}
		key := client.ObjectKey{Namespace: binding.Namespace, Name: binding.RoleRef.Name}
		if err := m.admin.Get(r.Context(), key, &rbacv1.Role{}); apierrors.IsNotFound(err) {
			return statusAnswer(r, http.StatusNotFound, metav1.Status{
				Reason: metav1.StatusReasonNotFound, Message: "roles.rbac.authorization.k8s.io " + key.Name + " not found",
				Details: &metav1.StatusDetails{Group: rbacv1.GroupName, Kind: "roles", Name: key.Name},
			}), nil
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return to.RoundTrip(r)
	}}
}

// start starts the programs of the agent.
func (m *member) start(ctx context.Context) {
	m.agent.start(ctx)
	if m.worker != nil {
		m.worker.start(ctx)
	}
}

// links are all ways of the agent.
func (m *member) links() []*link { return []*link{m.toHub, m.toOwn, m.toHost} }
