package virtual

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/agent"
	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/hub/webhook"
	"github.com/spokelet/spokelet/internal/hubprocess"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/apiserver"
	"github.com/spokelet/spokelet/test/sandbox"
)

// Options are how a World is.
type Options struct {
	// Clusters and AddOns are how many there are.
	Clusters, AddOns int
	// Definitions are those of the hub; nil means those that its manager ships and converts.
	Definitions [][]byte
	// Dir is where kubeconfigs are written.
	Dir string
	// Log is the log of all programs.
	Log logr.Logger
}

// World is a hub with its clusters and their programs.
type World struct {
	options Options
	hub     *apiserver.Server
	admin   client.WithWatch
	manager *program
	// way is the hub manager's way to its hub.
	way      *link
	clusters []*Cluster
	byName   map[string]*Cluster
	signer   *signer
	judge    *judge
	scheme   *runtime.Scheme
	// skews are by how much the hub is ahead of the agents of some clusters.
	skews map[string]time.Duration
	// turn has room for one program that stops.
	turn chan struct{}

	ctx    context.Context //nolint:containedctx // it is the life of the world
	cancel context.CancelFunc
}

// Cluster is a managed cluster with its agent.
type Cluster struct {
	Name   string
	server *apiserver.Server
	admin  client.WithWatch
	agent  *program
	// toHub and toOwn are the ways of the agent.
	toHub, toOwn *link
}

const hubHost = "hub"

// New returns a world in which no program runs yet.
func New(ctx context.Context, o Options) (*World, error) {
	w := &World{options: o, byName: map[string]*Cluster{}, skews: map[string]time.Duration{}, turn: make(chan struct{}, 1)}
	var err error
	if w.scheme, err = hubprocess.NewScheme(); err != nil {
		return nil, err
	}
	w.ctx, w.cancel = context.WithCancel(ctx)
	if o.Definitions == nil {
		if o.Definitions, err = shipped(); err != nil {
			return nil, err
		}
	}
	hubKinds, err := apiserver.Defined(o.Definitions)
	if err != nil {
		return nil, err
	}
	w.hub = apiserver.New(apiserver.Options{Resources: hubKinds, Webhook: webhook.Handler(logr.Discard())})
	if w.admin, err = w.adminOf(w.hub, hubKinds); err != nil {
		return nil, err
	}
	if w.signer, err = newSigner(w); err != nil {
		return nil, err
	}
	w.judge = newJudge(w)
	if err := w.addHub(); err != nil {
		return nil, err
	}
	spokeKinds, err := apiserver.Defined(manifests.SpokeCRDs())
	if err != nil {
		return nil, err
	}
	for i := range o.Clusters {
		name := fmt.Sprintf("store-%04d", i)
		c, err := w.newCluster(name, spokeKinds)
		if err != nil {
			return nil, err
		}
		w.clusters, w.byName[name] = append(w.clusters, c), c
	}
	return w, nil
}

// adminOf returns a client of a server who may do everything.
func (w *World) adminOf(s *apiserver.Server, kinds []apiserver.Resource) (client.WithWatch, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, r := range slices.Concat(apiserver.BuiltIn(), kinds) {
		scope := meta.RESTScopeRoot
		if r.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		for _, version := range r.Served {
			served := schema.GroupVersion{Group: r.Group, Version: version}
			mapper.AddSpecific(served.WithKind(r.Kind), served.WithResource(r.Resource),
				served.WithResource(strings.ToLower(r.Kind)), scope)
		}
	}
	config := &rest.Config{Host: "https://admin", Transport: s.Transport("jane", "system:masters"), QPS: -1}
	c, err := client.NewWithWatch(config, client.Options{Scheme: w.scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("building the client of an administrator: %w", err)
	}
	return c, nil
}

// accountOf is the user name of a ServiceAccount.
func accountOf(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

// addHub prepares the hub and its manager.
func (w *World) addHub() error {
	if err := create(w.ctx, w.admin, hubObjects()...); err != nil {
		return err
	}
	file, err := w.writeKubeconfig(hubHost)
	if err != nil {
		return err
	}
	user := accountOf(names.NamespaceHub, names.ServiceAccountManager)
	w.way = newLink("the hub manager", w.hub.Transport(user), w.judge.loops("the hub manager"))
	c := hub.DefaultConfig()
	c.Kubeconfig, c.Namespace, c.HealthAddress, c.LeaderElect = file, names.NamespaceHub, "0", false
	c.GiveBackMemory = false
	c.RequirePolicies = false // nothing in memory evaluates them
	c.AutoApprovedCSRUsers = []string{accountOf(names.NamespaceBootstrap, names.ServiceAccountBootstrap)}
	c.WrapTransport = func(http.RoundTripper) http.RoundTripper { return router{hubHost: w.way} }
	w.manager = &program{
		name: "hub", log: w.options.Log, failed: func(err error) { w.judge.ended("", err) },
		run: func(ctx context.Context) error { return hub.Run(ctx, c) },
	}
	return nil
}

// newCluster prepares a cluster and its agent.
func (w *World) newCluster(name string, kinds []apiserver.Resource) (*Cluster, error) {
	c := &Cluster{Name: name, server: apiserver.New(apiserver.Options{Resources: kinds})}
	var err error
	if c.admin, err = w.adminOf(c.server, kinds); err != nil {
		return nil, err
	}
	own := name + ".own"
	file, err := w.writeKubeconfig(own)
	if err != nil {
		return nil, err
	}
	bootstrap, err := kubeconfig(hubHost)
	if err != nil {
		return nil, err
	}
	if err := create(w.ctx, c.admin,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceAgent}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.NamespaceAgentAddon}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: names.NamespaceAgent, Name: names.SecretBootstrap},
			Data:       map[string][]byte{"kubeconfig": bootstrap},
		},
	); err != nil {
		return nil, fmt.Errorf("preparing cluster %s: %w", name, err)
	}
	user := accountOf(names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	account := accountOf(names.NamespaceAgent, names.ServiceAccountAgent)
	c.toHub = newLink("the agent of "+name+" on the hub", w.hub.Transport(user), w.judge.loops(name))
	c.toOwn = newLink("the agent of "+name+" on its cluster", c.server.Transport(account), w.judge.loops(name))
	config := agent.DefaultConfig()
	config.ClusterName, config.Namespace, config.Kubeconfig = name, names.NamespaceAgent, file
	config.LeaderElect, config.GiveBackMemory = false, false
	config.WrapTransport = func(http.RoundTripper) http.RoundTripper { return router{hubHost: c.toHub, own: c.toOwn} }
	c.agent = &program{
		name: name, log: w.options.Log, failed: func(err error) { w.judge.ended(name, err) },
		run: func(ctx context.Context) error { return agent.Run(ctx, config) },
	}
	return c, nil
}

// canaries are the clusters that get grouped add-ons first.
func (w *World) canaries() []*Cluster { return w.clusters[max(0, len(w.clusters)-canaries):] }

// isCanary reports whether a cluster gets grouped add-ons first.
func (w *World) isCanary(cluster string) bool {
	return slices.ContainsFunc(w.canaries(), func(c *Cluster) bool { return c.Name == cluster })
}

// Start starts all programs and what else lives in the fleet.
func (w *World) Start() {
	w.signer.start()
	w.judge.start()
	w.manager.start(w.ctx)
	for _, c := range w.clusters {
		w.runWorkloads(c)
		c.agent.start(w.ctx)
	}
}

// Stop ends all programs.
func (w *World) Stop() {
	for _, c := range w.clusters {
		c.agent.stop()
	}
	w.manager.stop()
	w.cancel()
}

// create makes objects.
func create(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		if err := c.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// writeKubeconfig writes a kubeconfig of a host and returns its path.
func (w *World) writeKubeconfig(host string) (string, error) {
	data, err := kubeconfig(host)
	if err != nil {
		return "", err
	}
	path := filepath.Join(w.options.Dir, host+".kubeconfig")
	return path, os.WriteFile(path, data, 0o600)
}

// kubeconfig returns a kubeconfig of a host. Who its user is decides the link.
func kubeconfig(host string) ([]byte, error) {
	return sandbox.Kubeconfig(host, &rest.Config{Host: "https://" + host, BearerToken: "none"})
}
