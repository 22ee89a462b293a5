package rights_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
	"github.com/spokelet/spokelet/test/sandbox/persona"
)

const (
	// own is the cluster with an agent; other is one that an administrator created, without an agent.
	own, other = persona.Cluster, "cluster2"
	// lifetime is that of all certificates of the hub's API server, so that the agent renews its own while it is watched.
	lifetime = time.Minute
)

//go:embed testdata/hub.yaml
var onTheHub []byte

//go:embed testdata/spoke.yaml
var onTheSpoke []byte

// world is the fleet in which the scenario takes place.
type world struct {
	*fleet.Fleet
	cluster *fleet.Cluster
	record  record
}

// step is a part of the scenario.
type step struct {
	// does is the action of the scenario.
	does string
	run  func(ctx context.Context) error
}

// steps are the scenario.
func (w *world) steps() []step {
	return []step{
		{"the hub manager installs definitions and announces its webhooks", w.install},
		{"a cluster joins, is accepted and reports", w.join},
		{"add-ons are installed by placement, configured, and get credentials by certificate", w.installAddOns},
		{"what is enabled changes", w.changeAddOns},
		{"works are applied in every way, by the agent and by an executor", w.applyWorks},
		{"every persona asks what it can do", w.review},
		{"the roles of the cluster are noted", w.noteAccepted},
		{"an add-on changes to tokens and back", w.useTokens},
		{"works go, in order and without", w.removeWorks},
		{"a work goes when its time is over", w.expireWork},
		{"a cluster without an agent is silent", w.silence},
		{"the agent renews its certificate", w.renew},
		{"the hub denies the cluster and accepts it again", w.deny},
		{"add-ons go", w.removeAddOns},
		{"a cluster goes", w.removeCluster},
		{"the hub manager leaves admission to somebody else", w.restartWithoutAdmission},
	}
}

// play runs all steps and reads the audit logs. What a step waited for in vain is often a right that is missing, so the
// requests that were refused are told with its error.
func (w *world) play(ctx context.Context) error {
	failed := w.runSteps(ctx)
	// The API server logs a watch when it ends.
	for _, process := range slices.Backward(w.Processes()) {
		process.Stop(10 * time.Second)
	}
	shipped, err := shippedGrants()
	failed = errors.Join(failed, err)
	w.record.grants = append(shipped, w.record.grants...)
	for _, plane := range []*sandbox.ControlPlane{w.Hub, w.cluster.ControlPlane} {
		requests, err := readAudit(plane)
		w.record.requests = append(w.record.requests, requests...)
		failed = errors.Join(failed, err)
	}
	if failed == nil {
		return nil
	}
	for _, r := range w.record.forbidden() {
		failed = errors.Join(failed, fmt.Errorf("refused: %s", r))
	}
	return failed
}

func (w *world) runSteps(ctx context.Context) error {
	for _, s := range w.steps() {
		started := time.Now()
		if err := w.runStep(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.does, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", s.does, time.Since(started).Round(10*time.Millisecond))
	}
	return nil
}

func (w *world) runStep(ctx context.Context, s step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
	defer cancel()
	return s.run(ctx)
}

// install brings up the hub with all that its administrators leave to it.
func (w *world) install(ctx context.Context) error {
	if err := w.InstallHub(ctx, nil, "--leader-elect=true"); err != nil {
		return err
	}
	if err := w.Hub.Apply(ctx, persona.Documents(), onTheHub); err != nil {
		return err
	}
	return w.createCA(ctx)
}

// join brings up the agent, with everything on the cluster that it can report.
func (w *world) join(ctx context.Context) error {
	if err := w.cluster.ControlPlane.Apply(ctx, manifests.SpokeCRDs()...); err != nil {
		return err
	}
	if err := w.cluster.ControlPlane.Apply(ctx, onTheSpoke); err != nil {
		return err
	}
	if err := w.StartAgent(ctx, w.cluster, "--leader-elect=true", "--leader-election-retry-period=1s",
		"--feature-gates=ClusterProperty=true", "--appliedmanifestwork-eviction-grace-period=1s", "--work-cache-dir="+w.Dir()+"/works"); err != nil {
		return err
	}
	if err := w.Accept(ctx, own, map[string]string{"environment": "demo"}); err != nil {
		return err
	}
	if err := w.WaitAvailable(ctx, w.cluster, nil); err != nil {
		return err
	}
	if err := w.createOther(ctx); err != nil {
		return err
	}
	return w.manageNamespace(ctx)
}
