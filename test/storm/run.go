package storm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/proxy"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	clusterName = "storm"
	// DefaultEdits is how many edits a storm has.
	DefaultEdits = 2000
	// DefaultCalm is how many edits are between two calms.
	DefaultCalm = 200
	// DefaultPatience is how long a calm may take until all agrees: longer than the agent damps repairs of one object
	// that was disturbed again and again, and than its longest pause after failures.
	DefaultPatience = 3 * time.Minute
	// restFor is how long the agent must send nothing when all agrees.
	restFor = 3 * time.Second
	// evictionGrace is the grace of works that vanished.
	evictionGrace = 5 * time.Second
	// slowAfter is how long a calm takes before it tells what it waits for.
	slowAfter = 5 * time.Second
	// told is how many edits of an object a violation quotes.
	told = 12
)

// Options are the size and the seed of a storm.
type Options struct {
	// Seed decides the edits.
	Seed uint64
	// Edits is how many there are; 0 means DefaultEdits, or without end where Lasts bounds them.
	Edits int
	// Lasts is how long there are edits, before the last calm; 0 is until there were all.
	Lasts time.Duration
	// Calm is how many are between two calms; 0 means DefaultCalm.
	Calm int
	// Patience is how long a calm may take; 0 means DefaultPatience.
	Patience time.Duration
	// Lies puts a proxy that lies before each API server: agent and hub manager see the truth only in the calms.
	Lies bool
	// Binaries is the directory with our programs, as in fleet.Options.
	Binaries string
	// Dir receives logs and data, as in fleet.Options; empty means a temporary directory.
	Dir string
	// Samples receives what the programs use, as in fleet.Options; empty means nothing.
	Samples string
	// Log receives what happens; nil drops it.
	Log io.Writer
}

// Report holds what happened in a storm.
type Report struct {
	// Edits counts the edits that were done, Missed those of them that found no object to edit.
	Edits, Missed int
	// Actions counts the edits by what they did.
	Actions map[string]int
	// Doubts counts the objects for which the storm could not wait until the agent had done its part.
	Doubts int
	// Calms is how often everything was compared, Slowest how long it took at most until all agreed.
	Calms   int
	Slowest time.Duration
	// Spoke and Hub count the requests of the agent, leases and watches aside.
	Spoke, Hub int
	// Lies counts what the proxies lied about, by the names of package proxy.
	Lies map[string]int
	// Took is how long the edits and calms took, without bringing up the control planes.
	Took time.Duration
	// Violations are the differences that stayed, each with the latest edits that may have led to it; none is expected.
	Violations []string
}

// storm is a storm that runs.
type storm struct {
	Options
	fleet   *fleet.Fleet
	cluster *fleet.Cluster
	// hub and spoke are administrators without a limit, objects one for objects of any kind.
	hub, spoke client.Client
	objects    dynamic.Interface
	model      *Model
	history    []*Edit
	report     Report
	// excused are the works whose record a hand took away since the last calm.
	excused map[string]bool
	// same are objects that must not be made again.
	same sameObjects
	// proxies are those that lie: before the hub for agent and hub manager, and before the cluster.
	proxies []*proxy.Proxy
	// audits count the requests of the agent.
	hubAudit, spokeAudit audit

	// away are the things that were taken away and come back by themselves.
	mu      sync.Mutex
	away    map[action]chan struct{}
	returns errgroup.Group
}

// Run runs a storm. The report is complete even when there is an error.
func Run(ctx context.Context, o Options) (Report, error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Edits == 0 && o.Lasts == 0 {
		o.Edits = DefaultEdits
	}
	if o.Calm == 0 {
		o.Calm = DefaultCalm
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	f, err := fleet.New(ctx, fleet.Options{
		Clusters: []string{clusterName}, Binaries: o.Binaries, Dir: o.Dir, Audit: true, Link: true, FrontProxy: o.Lies,
		Samples: o.Samples, Log: o.Log,
	})
	if err != nil {
		return Report{}, err
	}
	s := &storm{
		Options: o, fleet: f, cluster: f.Cluster(clusterName), model: NewModel(o.Seed), away: map[action]chan struct{}{},
		excused: map[string]bool{}, same: sameObjects{}, report: Report{Actions: map[string]int{}, Lies: map[string]int{}},
	}
	err = s.all(ctx)
	err = errors.Join(err, s.returns.Wait(), s.endLies())
	return s.report, errors.Join(err, f.Close())
}

// all prepares, storms and compares.
func (s *storm) all(ctx context.Context) error {
	if err := errors.Join(s.placeProxies(), s.prepare(ctx)); err != nil {
		return fmt.Errorf("preparing the storm: %w", err)
	}
	began := time.Now()
	err := s.blow(ctx)
	s.report.Took = time.Since(began)
	return err
}

// prepare brings everything up, until the agent serves the cluster.
func (s *storm) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, DefaultPatience, fmt.Errorf("gave up after %s", DefaultPatience))
	defer cancel()
	var err error
	options := client.Options{Scheme: fleet.Scheme()}
	if s.spoke, err = client.New(s.cluster.ControlPlane.Admin(), options); err != nil {
		return fmt.Errorf("building the client of the cluster: %w", err)
	}
	if s.hub, err = client.New(s.fleet.Hub.Admin(), options); err != nil {
		return fmt.Errorf("building the client of the hub: %w", err)
	}
	if s.objects, err = dynamic.NewForConfig(s.cluster.ControlPlane.Admin()); err != nil {
		return fmt.Errorf("building the client of the cluster: %w", err)
	}
	s.hubAudit.path, s.spokeAudit.path = s.fleet.Hub.AuditLog(), s.cluster.ControlPlane.AuditLog()
	if err := s.fleet.InstallHub(ctx, nil); err != nil {
		return err
	}
	for _, name := range storage() {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := s.spoke.Create(ctx, ns); err != nil {
			return fmt.Errorf("making namespace %s: %w", name, err)
		}
	}
	if err := s.cluster.ControlPlane.Apply(ctx, []byte(customRights)); err != nil {
		return err
	}
	err = s.fleet.StartAgent(ctx, s.cluster, "--appliedmanifestwork-eviction-grace-period="+evictionGrace.String(), "-v=1",
		"--work-cache-dir="+filepath.Join(s.fleet.Dir(), "works"))
	if err != nil {
		return err
	}
	if err := s.fleet.Accept(ctx, clusterName, nil); err != nil {
		return err
	}
	return s.fleet.WaitAvailable(ctx, s.cluster, nil)
}

// customRights give the agent our custom resources, as its user would.
const customRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: storm-custom-resources
  labels: {open-cluster-management.io/aggregate-to-work: "true"}
rules:
- apiGroups: [` + domain + `]
  resources: ["*"]
  verbs: ["*"]
`

// blow does all edits, with a calm every so often and at the end, and deletes all works and uninstalls the hub manager
// after that.
func (s *storm) blow(ctx context.Context) error {
	s.lie()
	began := time.Now()
	for n, last := 1, false; !last; n++ {
		if err := s.do(ctx, s.model.Draw()); err != nil {
			return err
		}
		last = n == s.Edits || s.Lasts > 0 && time.Since(began) >= s.Lasts
		if n%s.Calm == 0 || last {
			if calm, err := s.calm(ctx, s.model.Calm()); err != nil || !calm {
				return err
			}
		}
	}
	calm, err := s.calm(ctx, s.model.End())
	if err == nil && calm {
		s.uninstall(ctx)
	}
	fmt.Fprintf(s.Log, "requests to the cluster: %v\nrequests to the hub: %v\n", s.spokeAudit.kinds, s.hubAudit.kinds)
	return err
}

// honest has all that lies tell the truth.
func (s *storm) honest() {
	for _, one := range s.proxies {
		one.Honest()
	}
}

// do does one edit.
func (s *storm) do(ctx context.Context, e *Edit) error {
	ctx, cancel := context.WithTimeoutCause(ctx, DefaultPatience, fmt.Errorf("gave up after %s", DefaultPatience))
	defer cancel()
	s.history = append(s.history, e)
	s.report.Edits++
	s.report.Actions[string(e.Action)]++
	fmt.Fprintf(s.Log, "%s %s\n", time.Now().UTC().Format("15:04:05.000"), e)
	s.excuse(e)
	s.note(ctx, e)
	if err := s.perform(ctx, e); err != nil {
		return fmt.Errorf("seed %d, edit %s: %w\n%s", s.Seed, e, err, s.latest(e.String()))
	}
	return nil
}

// calm does the edits that calm everything, waits until all agrees and the agent is at rest, and reports what does not
// agree. It reports whether all did.
func (s *storm) calm(ctx context.Context, edits []*Edit) (bool, error) {
	s.awaitReturns(ctx)
	s.honest()
	held := s.heldRight(ctx)
	for _, e := range edits {
		if err := s.do(ctx, e); err != nil {
			return false, err
		}
	}
	clear(s.excused)
	began := time.Now()
	patient, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	wrong, err := s.agreement(patient)
	if err != nil && ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	wrong = append(held, wrong...)
	took := time.Since(began)
	s.report.Calms++
	s.report.Slowest = max(s.report.Slowest, took)
	fmt.Fprintf(s.Log, "%s calm after edit %d: %d differences after %s\n",
		time.Now().UTC().Format(time.TimeOnly), s.report.Edits, len(wrong), took.Round(time.Millisecond))
	for _, what := range wrong {
		s.report.Violations = append(s.report.Violations,
			fmt.Sprintf("seed %d, edit %d: %s\n%s\n%s", s.Seed, s.report.Edits, what, s.latest(what), s.ends(what)))
	}
	if len(wrong) == 0 {
		if err := s.rest(patient); err != nil {
			s.report.Violations = append(s.report.Violations, fmt.Sprintf("seed %d, edit %d: %v", s.Seed, s.report.Edits, err))
			wrong = append(wrong, "no rest")
		}
	}
	if err := errors.Join(s.spokeAudit.read(), s.hubAudit.read()); err != nil {
		return false, err
	}
	s.report.Spoke, s.report.Hub = s.spokeAudit.requests, s.hubAudit.requests
	if len(wrong) > 0 {
		return false, nil
	}
	if err := s.noteAll(ctx); err != nil {
		return false, err
	}
	s.lie()
	return true, nil
}

// agreement waits until the world is as the model says, and returns what differed last.
func (s *storm) agreement(ctx context.Context) ([]string, error) {
	var wrong []string
	last := ""
	slow := time.Now().Add(slowAfter)
	err := fleet.Wait(ctx, "all to agree", nil, func(ctx context.Context) error {
		w, err := s.look(ctx)
		if err != nil {
			return err
		}
		if wrong = append(s.model.Check(w), s.checkSame(w)...); len(wrong) > 0 {
			if lines := strings.Join(wrong, "\n  "); time.Now().After(slow) && lines != last {
				last = lines
				fmt.Fprintf(s.Log, "%s still\n  %s\n", time.Now().UTC().Format("15:04:05.000"), lines)
			}
			return fleet.NotYet("%d differences", len(wrong))
		}
		return nil
	})
	if err != nil && len(wrong) == 0 {
		wrong = []string{err.Error()}
	}
	return wrong, err
}

// latest tells the latest edits that may have led to a violation.
func (s *storm) latest(what string) string {
	var lines []string
	for i := len(s.history) - 1; i >= 0 && len(lines) < told; i-- {
		if e := s.history[i]; e.concerns(what) || e.pause > 0 && len(lines) > 0 && len(lines) < told/2 {
			lines = append([]string{"      " + e.String()}, lines...)
		}
	}
	return strings.Join(lines, "\n")
}
