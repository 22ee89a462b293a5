// Package badcluster measures what other clusters notice when the agent of one cluster misbehaves: how long it takes
// until the hub manager has created a deleted ManifestWork of another cluster again, with a quiet agent and with one
// that does the same thing a hundred times a second, in turn.
//
// The agent keeps the API server busy, too, and with it the processors, which slows down everybody. A bare write beside
// each change shows by how much: the hub manager is to blame only for what is slower than that.
package badcluster

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/test/badagent"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

const (
	// most is how many times slower another cluster may become.
	most = 2
	// noise is by how much a time may differ for other reasons, for the median and for the 99th percentile.
	noise, noiseOfTail = 10 * time.Millisecond, 100 * time.Millisecond
)

// Options configure a run.
type Options struct {
	// Changes is how many changes of other clusters are measured with each misdeed, and as many without.
	Changes int
	// Others is the number of the other clusters.
	Others int
	// Rate is how often the agent misbehaves in a second.
	Rate float64
	// Senders is how many requests of the agent are on their way at the same time. The API server repeats a patch that
	// loses against another one of the same object, so many senders slow each other down.
	Senders int
	// Binaries is the directory with spokelet-hub; empty is bin.
	Binaries string
}

// DefaultOptions are those of the command.
func DefaultOptions() Options { return Options{Changes: 100, Others: 10, Rate: 100, Senders: 2} }

// bench is one run.
type bench struct {
	Options
	fleet *fleet.Fleet
	admin client.WithWatch
	log   io.Writer
	rows  []Row
}

// Run measures all misdeeds. It returns what it has measured also if it fails.
func Run(ctx context.Context, o Options, log io.Writer) (rows []Row, err error) {
	f, err := fleet.New(ctx, fleet.Options{Binaries: o.Binaries, Log: log})
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	defer func() {
		if failed := f.Close(); err == nil {
			err = failed
		}
	}()
	b := &bench{Options: o, fleet: f, log: log}
	err = b.all(ctx)
	return b.rows, err
}

func (b *bench) all(ctx context.Context) error {
	if err := b.fleet.InstallHub(ctx, nil); err != nil {
		return fmt.Errorf("installing the hub: %w", err)
	}
	var err error
	if b.admin, err = unlimited(b.fleet.Hub.Admin()); err != nil {
		return err
	}
	if err := b.fleet.Hub.Apply(ctx, badagent.Manifests()); err != nil {
		return fmt.Errorf("applying the add-on: %w", err)
	}
	for i := range b.Others {
		if err := b.enable(ctx, other(i)); err != nil {
			return err
		}
	}
	if _, err := b.repairs(ctx); err != nil { // The first changes are slower.
		return err
	}
	for i, misdeed := range badagent.Misdeeds() {
		row, err := b.measure(ctx, fmt.Sprintf("bad-%d", i), misdeed)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", misdeed.Name, err)
		}
		fmt.Fprintf(b.log, "  %+v\n", row)
		b.rows = append(b.rows, row)
	}
	return nil
}

func other(i int) string { return fmt.Sprintf("other-%d", i) }

// measure measures other clusters without and with one misdeed of a new cluster.
func (b *bench) measure(ctx context.Context, cluster string, misdeed badagent.Misdeed) (Row, error) {
	row := Row{Misdeed: misdeed.Name}
	if err := b.enable(ctx, cluster); err != nil {
		return row, err
	}
	user, err := b.fleet.Hub.User(csr.ClusterUser(cluster, "agent"), csr.ClusterGroup(cluster), csr.GroupManagedClusters)
	if err != nil {
		return row, fmt.Errorf("making the identity of the agent: %w", err)
	}
	own, err := unlimited(user)
	if err != nil {
		return row, err
	}
	agent := badagent.Agent{Client: own, Reader: b.admin, Cluster: cluster}
	if err := fleet.Wait(ctx, "the rights of "+cluster, nil, agent.Ready); err != nil {
		return row, err // it says what was awaited
	}
	if row.Alone, err = b.repairs(ctx); err != nil {
		return row, err
	}
	while, stop := context.WithCancel(ctx)
	defer stop()
	group, while := errgroup.WithContext(while)
	var done atomic.Int64
	b.misbehave(while, group, agent, misdeed, &done)
	began := time.Now()
	row.Beside, err = b.repairs(ctx)
	row.Rate = float64(done.Load()) / time.Since(began).Seconds()
	stop()
	if failed := group.Wait(); failed != nil {
		return row, failed
	}
	return row, err
}

// misbehave does the same thing again and again until ctx ends.
func (b *bench) misbehave(
	ctx context.Context, group *errgroup.Group, a badagent.Agent, m badagent.Misdeed, done *atomic.Int64,
) {
	pace := flowcontrol.NewTokenBucketRateLimiter(float32(b.Rate), 1)
	for range b.Senders {
		group.Go(func() error {
			for pace.Wait(ctx) == nil {
				err := m.Does(ctx, a, int(done.Add(1)))
				refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
				switch {
				case ctx.Err() != nil, apierrors.IsConflict(err), refused && m.Refused, err == nil && !m.Refused:
				default:
					return fmt.Errorf("the API server answers %q otherwise: %w", m.Name, err)
				}
			}
			return nil
		})
	}
}

// repairs deletes works of the other clusters, one after the other, and returns how long each of them was away, and how
// long bare writes took in between.
func (b *bench) repairs(ctx context.Context) (Times, error) {
	var t Times
	for i := range b.Changes {
		took, err := b.repair(ctx, other(i%b.Others))
		if err != nil {
			return t, err
		}
		bare, err := b.bare(ctx)
		if err != nil {
			return t, err
		}
		t.Repair, t.Bare = append(t.Repair, took), append(t.Bare, bare)
	}
	return t, nil
}

// repair deletes the work of a cluster and waits until it is there again.
func (b *bench) repair(ctx context.Context, cluster string) (time.Duration, error) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: badagent.Work}}
	if err := b.admin.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
		return 0, fmt.Errorf("reading the work of %s: %w", cluster, err)
	}
	return b.until(ctx, cluster, work, func() error { return b.admin.Delete(ctx, work) })
}

// bare writes a work that is nobody's and waits until a watch has it, which is what a repair costs without the hub
// manager.
func (b *bench) bare(ctx context.Context) (time.Duration, error) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: other(0), Name: "bare"}}
	if err := client.IgnoreNotFound(b.admin.Delete(ctx, work)); err != nil {
		return 0, fmt.Errorf("deleting a bare work: %w", err)
	}
	return b.until(ctx, work.Namespace, work, func() error { return b.admin.Create(ctx, work) })
}

// until returns the time from a change to the event of a new work.
func (b *bench) until(
	ctx context.Context, namespace string, work *workv1.ManifestWork, change func() error,
) (time.Duration, error) {
	before := work.UID
	events, err := b.admin.Watch(ctx, &workv1.ManifestWorkList{}, client.InNamespace(namespace))
	if err != nil {
		return 0, fmt.Errorf("watching %s: %w", namespace, err)
	}
	defer events.Stop()
	began := time.Now()
	if err := change(); err != nil {
		return 0, fmt.Errorf("changing %s: %w", namespace, err)
	}
	for event := range events.ResultChan() {
		seen, ok := event.Object.(*workv1.ManifestWork)
		if ok && seen.Name == work.Name && seen.UID != before && seen.DeletionTimestamp.IsZero() {
			return time.Since(began), nil
		}
	}
	return 0, fmt.Errorf("the watch of %s ended", namespace)
}

// enable accepts a cluster with the add-on and waits for its work.
func (b *bench) enable(ctx context.Context, cluster string) error {
	if err := b.admin.Create(ctx, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	}); err != nil {
		return fmt.Errorf("creating cluster %s: %w", cluster, err)
	}
	return fleet.Wait(ctx, "the work of "+cluster, nil, func(ctx context.Context) error {
		err := b.admin.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: badagent.AddOn},
		})
		if client.IgnoreAlreadyExists(err) != nil {
			return err // it is told with what was awaited
		}
		key := client.ObjectKey{Namespace: cluster, Name: badagent.Work}
		return b.admin.Get(ctx, key, &workv1.ManifestWork{}) // likewise
	})
}

func unlimited(config *rest.Config) (client.WithWatch, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: fleet.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("building a client: %w", err)
	}
	return c, nil
}
