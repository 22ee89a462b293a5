// Flood fills a hub with the largest objects that a bootstrap credential and the agent of one cluster may create, and
// prints one table with the memory of hub manager and agent under the limits that we ship. It ends with an error only
// if it could not measure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// victim is the cluster with a real agent, whose label all requests have, and full the one with full statuses.
	victim, full = "victim", "full"
	// hubLimit and agentLimit are the limits of memory that we ship, in MiB; the programs keep a tenth or 32 MiB below.
	hubLimit, agentLimit = 512, 128
	hubGoLimit           = "GOMEMLIMIT=460MiB"
	agentGoLimit         = "GOMEMLIMIT=96MiB"
	writers              = 16
	stopGrace            = 10 * time.Second
	// pause is between two looks at a processor, and busy how much of it a program at rest does not use in that time.
	pause, busy = 3 * time.Second, 60 * time.Millisecond
	// kibibyte is the size of the texts below.
	kibibyte = 1 << 10
)

type flood struct {
	requests, clusters, addOns int
	fleet                      *fleet.Fleet
	table                      measure.Table
}

func main() { os.Exit(measure.Main(run)) }

func run(ctx context.Context) error {
	var f flood
	flag.IntVar(&f.requests, "requests", 20_000, "certificate requests of the largest size")
	flag.IntVar(&f.clusters, "clusters", 10_000, "ManagedClusters that nobody accepts")
	flag.IntVar(&f.addOns, "add-ons", 20, "add-ons with full statuses on one cluster")
	binaries := flag.String("binaries", "", "directory with spokelet and spokelet-hub; empty is bin")
	verbose := flag.Bool("v", false, "log each step")
	flag.Parse()
	f.table.Log = io.Discard
	if *verbose {
		f.table.Log = os.Stderr
	}
	var err error
	f.fleet, err = fleet.New(ctx, fleet.Options{Clusters: []string{victim}, Binaries: *binaries, Log: f.table.Log})
	if err != nil {
		return fmt.Errorf("starting control planes: %w", err)
	}
	err = f.all(ctx)
	return errors.Join(err, f.fleet.Close(), measure.Write(os.Stdout, f.table.Figures))
}

func (f *flood) all(ctx context.Context) error {
	steps := []func(context.Context) error{
		f.join, f.askAll, f.createAll, f.reportAll, f.running, f.restart,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// join brings up the hub, the victim and its agent.
func (f *flood) join(ctx context.Context) error {
	if err := f.fleet.InstallHub(ctx, nil); err != nil {
		return fmt.Errorf("installing the hub: %w", err)
	}
	cluster := f.fleet.Cluster(victim)
	if err := f.fleet.StartAgent(ctx, cluster); err != nil {
		return fmt.Errorf("starting the agent: %w", err)
	}
	if err := f.fleet.Accept(ctx, victim, nil); err != nil {
		return fmt.Errorf("accepting the cluster: %w", err)
	}
	if err := f.fleet.WaitAvailable(ctx, cluster, nil); err != nil {
		return fmt.Errorf("waiting for the cluster: %w", err)
	}
	return f.note("before")
}

// bootstrap returns a client with the bootstrap credential.
func (f *flood) bootstrap(ctx context.Context) (client.Client, error) {
	config, err := f.fleet.Hub.ServiceAccount(ctx, names.NamespaceBootstrap, names.ServiceAccountBootstrap)
	if err != nil {
		return nil, fmt.Errorf("getting the bootstrap credential: %w", err)
	}
	return unlimited(config)
}

func unlimited(config *rest.Config) (client.Client, error) {
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: fleet.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	return c, nil
}

// many does something a number of times, several at once.
func many(ctx context.Context, count int, do func(ctx context.Context, n int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for n := range count {
		group.Go(func() error { return do(ctx, n) })
	}
	return group.Wait() // it is what do returned
}

// askAll creates the largest requests, with the label of the victim.
func (f *flood) askAll(ctx context.Context) error {
	c, err := f.bootstrap(ctx)
	if err != nil {
		return err
	}
	key, err := csr.NewKey()
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	one, err := csr.ForCluster(victim, "flood").Build(key)
	if err != nil {
		return fmt.Errorf("building a request: %w", err)
	}
	one.Spec.Request = append(one.Spec.Request,
		strings.Repeat("\n", approve.MaxRequestBytes-len(one.Spec.Request))...)
	one.Annotations = map[string]string{"flood": strings.Repeat("x", 4*kibibyte-8)}
	began := time.Now()
	err = many(ctx, f.requests, func(ctx context.Context, n int) error {
		request := one.DeepCopy()
		request.GenerateName, request.Name = "", fmt.Sprintf("flood-%06d", n)
		return c.Create(ctx, request)
	})
	f.table.Time(fmt.Sprintf("%d requests created in", f.requests), time.Since(began), 0)
	return err
}

// createAll creates the largest clusters that nobody accepts.
func (f *flood) createAll(ctx context.Context) error {
	c, err := f.bootstrap(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	err = many(ctx, f.clusters, func(ctx context.Context, n int) error {
		return c.Create(ctx, &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{
				Name:        fmt.Sprintf("flood-%06d", n),
				Annotations: map[string]string{"flood": strings.Repeat("x", 8*kibibyte-8)},
			},
			Spec: clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: []clusterv1.ClientConfig{{
				URL: "https://" + strings.Repeat("x", kibibyte), CABundle: make([]byte, 2*kibibyte),
			}}},
		})
	})
	f.table.Time(fmt.Sprintf("%d clusters created in", f.clusters), time.Since(began), 0)
	return err
}

// reportAll writes full statuses of a cluster, its add-ons and their works, as its agent.
func (f *flood) reportAll(ctx context.Context) error {
	cluster := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: full}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}
	if err := f.fleet.HubClient.Create(ctx, cluster); err != nil {
		return fmt.Errorf("creating cluster %s: %w", full, err)
	}
	config, err := f.fleet.Hub.User(csr.ClusterUser(full, "flood"), csr.ClusterGroup(full), csr.GroupManagedClusters)
	if err != nil {
		return fmt.Errorf("making the identity of an agent: %w", err)
	}
	agent, err := unlimited(config)
	if err != nil {
		return err
	}
	report := func(ctx context.Context, o client.Object, fill func()) error {
		return fleet.Wait(ctx, "the status of "+o.GetName(), nil, func(ctx context.Context) error {
			if err := f.fleet.HubClient.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			before, ok := o.DeepCopyObject().(client.Object)
			if !ok {
				return errors.New("a copy is not an object")
			}
			fill()
			return agent.Status().Patch(ctx, o, client.MergeFrom(before))
		})
	}
	err = report(ctx, cluster, func() {
		for n := range 60 {
			cluster.Status.ClusterClaims = append(cluster.Status.ClusterClaims, clusterv1.ManagedClusterClaim{
				Name: fmt.Sprintf("c%d", n), Value: strings.Repeat("v", kibibyte-1),
			})
		}
	})
	if err != nil {
		return err
	}
	return many(ctx, f.addOns, func(ctx context.Context, n int) error {
		in := metav1.ObjectMeta{Namespace: full, Name: fmt.Sprintf("flood%d", n)}
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: in}
		work := fullWork(in)
		for _, o := range []client.Object{addOn, work} {
			if err := f.fleet.HubClient.Create(ctx, o); err != nil {
				return fmt.Errorf("creating %T: %w", o, err)
			}
		}
		err := report(ctx, addOn, func() {
			for m := range 40 {
				addOn.Status.Conditions = append(addOn.Status.Conditions, condition(fmt.Sprintf("Flood%d", m), 1500))
			}
		})
		if err != nil {
			return err
		}
		return report(ctx, work, func() { fill(work) })
	})
}

func condition(kind string, size int) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: "Flood", LastTransitionTime: metav1.Now(),
		Message: strings.Repeat("m", size),
	}
}

func fullWork(in metav1.ObjectMeta) *workv1.ManifestWork {
	work := &workv1.ManifestWork{ObjectMeta: *in.DeepCopy()}
	work.Labels = map[string]string{names.LabelAddonName: in.Name}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"default"}}`),
	}}}
	return work
}

// fill gives a work a status of 1.3 MiB.
func fill(work *workv1.ManifestWork) {
	for n := range 650 {
		text := strings.Repeat("f", 900)
		work.Status.ResourceStatus.Manifests = append(work.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{Ordinal: int32(n), Kind: "ConfigMap", Name: fmt.Sprint("n", n)},
			Conditions:   []metav1.Condition{condition(workv1.ManifestApplied, 800)},
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{
				{Name: "text", Value: workv1.FieldValue{Type: workv1.String, String: &text}},
			}},
		})
	}
}

// running measures both programs after the flood.
func (f *flood) running(ctx context.Context) error {
	for _, p := range []*sandbox.Process{f.fleet.HubManager(), f.fleet.Cluster(victim).Agent} {
		if err := settle(ctx, p); err != nil {
			return err
		}
	}
	return f.note("after it")
}

// restart measures both programs from their start, with the memory that they have in a container with the shipped
// limit.
func (f *flood) restart(ctx context.Context) error {
	for p, limit := range map[*sandbox.Process]string{
		f.fleet.HubManager(): hubGoLimit, f.fleet.Cluster(victim).Agent: agentGoLimit,
	} {
		p.Stop(stopGrace)
		p.Env = append(p.Env, limit)
		if err := p.Start(); err != nil {
			return fmt.Errorf("starting again: %w", err)
		}
		if err := settle(ctx, p); err != nil {
			return err
		}
	}
	return f.note("start with it")
}

// settle waits until a program uses no processor.
func settle(ctx context.Context, p *sandbox.Process) error {
	before := time.Duration(-1)
	for {
		used, err := measure.Processor(p.PID())
		if err != nil {
			return fmt.Errorf("measuring %s: %w", p.Name, errors.Join(err, p.Exited()))
		}
		if before >= 0 && used > 0 && used-before < busy {
			return nil
		}
		before = used
		select {
		case <-ctx.Done():
			return ctx.Err() // it was interrupted
		case <-time.After(pause):
		}
	}
}

// note adds the memory of both programs to the table.
func (f *flood) note(when string) error {
	for name, p := range map[string]struct {
		process *sandbox.Process
		limit   float64
	}{"hub manager": {f.fleet.HubManager(), hubLimit}, "agent": {f.fleet.Cluster(victim).Agent, agentLimit}} {
		peak, err := measure.Peak(p.process.PID())
		if err != nil {
			return fmt.Errorf("measuring the %s: %w", name, err)
		}
		now, err := p.process.RSS()
		if err != nil {
			return fmt.Errorf("measuring the %s: %w", name, err)
		}
		f.table.Number(when+", "+name+", at most", peak/measure.Mebibyte, 0, " MiB", p.limit)
		f.table.Number(when+", "+name+", at rest", float64(now)/measure.Mebibyte, 0, " MiB", p.limit)
	}
	return nil
}
