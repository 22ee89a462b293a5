package spokes

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/watch"
)

// leaseSeconds is the lease duration of the clusters: a day, so that nobody misses leases that are not renewed.
const leaseSeconds = 24 * 60 * 60

// Join creates accepted clusters, writes the status of each as soon as the hub has accepted it, and returns when all
// are available.
func (s *Spokes) Join(ctx context.Context, clusters []string, labels map[string]string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	left := &joining{left: map[string]bool{}, ready: make(chan *clusterv1.ManagedCluster, len(clusters))}
	for _, name := range clusters {
		left.left[name] = true
	}
	source := watch.FromClient(s.client, metav1.NamespaceAll,
		func() client.ObjectList { return &clusterv1.ManagedClusterList{} })
	source.PageSize = pageSize
	one := watch.Watch[*clusterv1.ManagedCluster]{
		Name: "spokes", Description: "managedclusters", Source: source, Handler: left,
	}
	var watching sync.WaitGroup
	watching.Go(func() { one.Run(ctx) })
	defer watching.Wait()
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * s.opts.Writers)
	group.Go(func() error { return s.admit(ctx, len(clusters), left.ready) })
	for _, name := range clusters {
		group.Go(func() error {
			if err := s.client.Create(ctx, managedCluster(name, labels)); err != nil {
				return fmt.Errorf("creating cluster %s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Return counts clusters as joined that the hub has from an earlier time. The error names one that it does not have.
func (s *Spokes) Return(ctx context.Context, clusters []string) error {
	var all clusterv1.ManagedClusterList
	if err := s.client.List(ctx, &all); err != nil {
		return fmt.Errorf("listing the clusters of an earlier run: %w", err)
	}
	known := map[string]bool{}
	for i := range all.Items {
		known[all.Items[i].Name] = meta.IsStatusConditionTrue(
			all.Items[i].Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	}
	for _, name := range clusters {
		if !known[name] {
			return fmt.Errorf("cluster %s is not available on the hub of the earlier run, which has %d clusters: keep one "+
				"with as many", name, len(known))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined = clusters
	return nil
}

// managedCluster is a cluster whose agent has registered and that an administrator has accepted.
func managedCluster(name string, labels map[string]string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: leaseSeconds},
	}
}

// admit writes the status of n clusters.
func (s *Spokes) admit(ctx context.Context, n int, ready <-chan *clusterv1.ManagedCluster) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.opts.Writers)
	for done := range n {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d clusters have joined: %w", done, n, context.Cause(ctx))
		case cluster := <-ready:
			group.Go(func() error { return s.report(ctx, cluster.Name) })
		}
	}
	return group.Wait()
}

// report writes the status of a cluster that was accepted.
func (s *Spokes) report(ctx context.Context, name string) error {
	for {
		var cluster clusterv1.ManagedCluster
		if err := s.client.Get(ctx, client.ObjectKey{Name: name}, &cluster); err != nil {
			return fmt.Errorf("reading cluster %s: %w", name, err)
		}
		available(&cluster, time.Now())
		err := s.client.Status().Update(ctx, &cluster)
		if lost(err) == nil && err != nil {
			continue // the hub wrote it, too
		}
		if err != nil {
			return fmt.Errorf("writing the status of cluster %s: %w", name, err)
		}
		s.mu.Lock()
		s.joined = append(s.joined, name)
		s.mu.Unlock()
		return nil
	}
}

// available gives a cluster the status of one whose agent runs.
func available(cluster *clusterv1.ManagedCluster, now time.Time) {
	for _, c := range []metav1.Condition{
		{Type: clusterv1.ManagedClusterConditionJoined, Reason: "ManagedClusterJoined", Message: "Managed cluster joined"},
		{
			Type: clusterv1.ManagedClusterConditionAvailable, Reason: "ManagedClusterAvailable",
			Message: "Managed cluster is available",
		},
	} {
		c.Status, c.LastTransitionTime = metav1.ConditionTrue, metav1.NewTime(now)
		meta.SetStatusCondition(&cluster.Status.Conditions, c)
	}
	cluster.Status.Version.Kubernetes = "v1.35.0"
}

// joining is a watch for clusters that the hub has accepted.
type joining struct {
	left  map[string]bool
	ready chan *clusterv1.ManagedCluster
}

// Replace implements watch.Handler.
func (j *joining) Replace(ctx context.Context, all []*clusterv1.ManagedCluster, _ string) {
	for _, cluster := range all {
		j.Update(ctx, cluster)
	}
}

// Update implements watch.Handler. The channel has room for all clusters.
func (j *joining) Update(_ context.Context, cluster *clusterv1.ManagedCluster) {
	accepted := meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted)
	if accepted && j.left[cluster.Name] {
		delete(j.left, cluster.Name)
		j.ready <- cluster
	}
}

// Delete implements watch.Handler.
func (j *joining) Delete(context.Context, *clusterv1.ManagedCluster) {}

// heartbeat renews the leases of all clusters that have joined, one after the other, so that the writes are spread over
// the period. An API server that takes its time for one does not keep the next one from being sent.
func (s *Spokes) heartbeat(ctx context.Context) {
	var group errgroup.Group
	defer func() { _ = group.Wait() }() // The functions return no error.
	group.SetLimit(heartbeats)
	for at := 0; ; at++ {
		s.mu.Lock()
		clusters := s.joined
		s.mu.Unlock()
		pause := s.opts.Heartbeat / time.Duration(max(len(clusters), 1))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if len(clusters) == 0 {
			continue
		}
		group.Go(func() error {
			if err := s.renew(ctx, clusters[at%len(clusters)], time.Now()); err != nil && ctx.Err() == nil {
				fmt.Fprintln(s.opts.Log, err)
			}
			return nil
		})
	}
}

// heartbeats is how many leases are renewed at once, at most.
const heartbeats = 50

// renew renews the lease of a cluster.
func (s *Spokes) renew(ctx context.Context, cluster string, now time.Time) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: names.LeaseCluster}}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": metav1.NewMicroTime(now)}})
	if err != nil {
		return fmt.Errorf("encoding a lease: %w", err)
	}
	if err := s.client.Patch(ctx, lease, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("renewing the lease of cluster %s: %w", cluster, err)
	}
	return nil
}
