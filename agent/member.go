package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spokelet/spokelet/agent/bootstrap"
	"github.com/spokelet/spokelet/agent/join"
	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/issue"
)

// member is the credential of a process that only does works: the hub kubeconfig that the registration agent keeps, as
// files in the directory where its Secret is mounted.
type member struct {
	// credential may be used where problem is nil.
	credential join.Credential
	// files are the files that were read or missing.
	files []string
	// problem is why there is no credential, expired that it is the age of the certificate.
	problem error
	expired bool
}

// same reports whether nothing changed between two reads.
func (m member) same(other member) bool {
	return m.credential.Same(other.credential) && fmt.Sprint(m.problem) == fmt.Sprint(other.problem)
}

// readMember reads the hub kubeconfig at a path, with the certificate that it names. An empty name of the cluster is
// taken from the file cluster-name beside the kubeconfig, or from the certificate.
func readMember(path, cluster string) member {
	m := member{files: []string{path, filepath.Join(filepath.Dir(path), csr.KeyClusterName)}}
	raw, named, err := bootstrap.ReadFile(path)
	m.files = append(m.files, named...)
	switch {
	case err != nil:
		m.problem = fmt.Errorf("hub kubeconfig %s: %w", path, err)
		return m
	case raw == nil:
		m.problem = fmt.Errorf("hub kubeconfig %s does not exist yet: the registration agent writes it when the hub has "+
			"approved its certificate", path)
		return m
	}
	if m.credential, err = memberCredential(raw); err != nil {
		m.problem = fmt.Errorf("hub kubeconfig %s: %w", path, err)
		return m
	}
	m.name(path, cluster)
	return m
}

// expire sets the problem of a certificate that expired by now.
func (m *member) expire(path string, now time.Time) {
	if m.problem == nil && !m.credential.NotAfter.After(now) {
		m.expired = true
		m.problem = fmt.Errorf("hub kubeconfig %s: its certificate expired at %s: the registration agent replaces it", path,
			m.credential.NotAfter.UTC().Format(time.RFC3339))
	}
}

// readMember reads the hub kubeconfig and judges its certificate by the time of the hub, like the phase that serves
// with it.
func (a *agent) readMember(ctx context.Context) member {
	m := readMember(a.config.hubFile(), a.config.ClusterName)
	if m.problem == nil {
		a.hubClock.Query(ctx, m.credential.Server, m.credential.Pair, a.config.WrapTransport)
		m.expire(a.config.hubFile(), a.hubClock.Now())
	}
	return m
}

// name sets the cluster that the credential is for.
func (m *member) name(path, cluster string) {
	id := &m.credential.Identity
	if cluster == "" {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), csr.KeyClusterName))
		if cluster = strings.TrimSpace(string(data)); err != nil || cluster == "" {
			cluster = id.Cluster
		}
	}
	if id.Cluster != "" && id.Cluster != cluster {
		m.problem = fmt.Errorf("hub kubeconfig %s: its certificate is for cluster %s, this agent is for cluster %s: check "+
			"--spoke-cluster-name of both agents", path, id.Cluster, cluster)
	}
	if id.Cluster = cluster; cluster == "" {
		m.problem = fmt.Errorf("nothing names the cluster: set --spoke-cluster-name, as neither the file %s beside hub "+
			"kubeconfig %s nor its certificate does", csr.KeyClusterName, path)
	}
}

// memberCredential reads a kubeconfig that holds its certificate in itself.
func memberCredential(kubeconfig []byte) (join.Credential, error) {
	server, err := issue.ParseHubServer(kubeconfig)
	if err != nil {
		return join.Credential{}, err
	}
	config, err := bootstrap.Parse(kubeconfig)
	if err != nil {
		return join.Credential{}, err
	}
	pair := issue.Pair{Certificate: config.CertData, Key: config.KeyData}
	if len(pair.Certificate) == 0 || len(pair.Key) == 0 {
		return join.Credential{}, errors.New("it has no client certificate with its key, and other ways to prove who the " +
			"agent is are not supported")
	}
	parsed, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return join.Credential{}, fmt.Errorf("reading its client certificate: %w", err)
	}
	id, _ := csr.ParseClusterUser(parsed.Leaf.Subject.CommonName)
	return join.Credential{Identity: id, Server: server, Pair: pair, NotAfter: parsed.Leaf.NotAfter}, nil
}

// memberWatch reads the files of a member whenever they change. It is a Runnable of a phase's manager.
type memberWatch struct {
	*agent
	// changed is called when the credential or its problem changed; it must not block.
	changed func(member)

	mu   sync.Mutex
	last member
}

// watchMember adds the watch of the member's files to the manager of a phase, and in hosted mode the watch of the
// kubeconfig of the managed cluster.
func (a *agent) watchMember(mgr ctrl.Manager, found member, changed func(member), end context.CancelCauseFunc) error {
	if err := mgr.Add(&memberWatch{agent: a, changed: changed, last: found}); err != nil {
		return fmt.Errorf("adding the watch of the hub kubeconfig: %w", err)
	}
	if !a.hosted() {
		return nil
	}
	spoke := &bootstrap.Watcher{
		Over: func([]bootstrap.Candidate) string { return "" }, Spoke: a.spokeFile(), End: endPhase(end), Clock: a.clock,
		Poll: a.config.PollFiles,
	}
	return spoke.SetupWithManager(mgr)
}

// Start implements manager.Runnable.
func (w *memberWatch) Start(ctx context.Context) error {
	files := func() []string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.last.files
	}
	watch := &bootstrap.FileWatch{
		Paths: files, Changed: func() { w.read(ctx) }, Clock: w.clock, Poll: w.config.PollFiles,
	}
	return watch.Start(ctx)
}

func (w *memberWatch) read(ctx context.Context) {
	now := w.readMember(ctx)
	w.mu.Lock()
	before := w.last
	w.last = now
	w.mu.Unlock()
	if now.same(before) {
		return
	}
	if now.problem != nil {
		log.FromContext(ctx).Info("the hub kubeconfig cannot be used", "reason", now.problem.Error())
	}
	w.changed(now)
}

// memberPhase is the phase of a process that only does works: it serves with the hub kubeconfig that the registration
// agent keeps, or waits for it. It never requests a certificate.
func (a *agent) memberPhase(ctx context.Context) error {
	found := a.readMember(ctx)
	problem := found.problem
	if err := a.connectSpoke(ctx); err != nil {
		problem = err
	}
	if problem != nil {
		return a.awaitMember(ctx, found, problem)
	}
	logger := ctrl.LoggerFrom(ctx).WithValues("cluster", found.credential.Identity.Cluster,
		"hub", found.credential.Server.Server)
	logger.Info("serving works", "certificateExpires", found.credential.NotAfter)
	return a.serveWorks(ctrl.LoggerInto(ctx, logger), found)
}

// awaitMember waits until the files change, and keeps the works that it has offline copies of. problem is that of the
// hub kubeconfig, or that of the managed cluster.
func (a *agent) awaitMember(ctx context.Context, found member, problem error) error {
	if a.state.Set("waiting: " + problem.Error()) {
		ctrl.LoggerFrom(ctx).Info("waiting", "reason", problem.Error())
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	mgr, err := a.newManager(ctx)
	if err != nil {
		return err
	}
	if c := found.credential; c.Server.Server != "" && c.Identity.Cluster != "" && a.spoke != nil {
		if _, err := a.worksWithoutHub(ctx, mgr, c.Server.Server, c.Identity.Cluster); err != nil {
			return err
		}
	}
	changed := func(member) { end(phaseOverError("the hub kubeconfig changed")) }
	if err := a.watchMember(mgr, found, changed, end); err != nil {
		return err
	}
	if found.expired {
		ask := manager.RunnableFunc(func(ctx context.Context) error { return a.askTime(ctx, found, end) })
		if err := mgr.Add(ask); err != nil {
			return fmt.Errorf("adding the question for the time at the hub: %w", err)
		}
	}
	return finish(ctx, mgr)
}

// askTime asks the hub for the time until it is known, and ends the phase if the certificate is valid by it: nothing
// changes the files then.
func (a *agent) askTime(ctx context.Context, found member, end context.CancelCauseFunc) error {
	c := found.credential
	for wait := firstPause; ctx.Err() == nil && !a.hubClock.IsKnown(); wait = pauses().Next(wait) {
		a.sleep(ctx, wait)
		a.hubClock.Query(ctx, c.Server, c.Pair, a.config.WrapTransport)
	}
	if c.NotAfter.After(a.hubClock.Now()) {
		end(phaseOverError("the certificate is valid by the time at the hub"))
	}
	return nil
}

// serveWorks serves the works of a cluster whose membership another process keeps. It ends when the hub kubeconfig
// leads to another hub or its certificate expires.
func (a *agent) serveWorks(ctx context.Context, found member) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	target := bootstrap.Target{Server: found.credential.Server}
	s := &serving{agent: a, target: target, credential: found.credential, ends: ends{end: end}}
	return s.run(ctx, func() error {
		changed := func(now member) {
			if now.problem == nil {
				s.keeper.offer(now.credential)
			}
		}
		return a.watchMember(s.mgr, found, changed, end)
	})
}
