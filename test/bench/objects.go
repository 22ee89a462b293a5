package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writers is how many write at once where there is no agent, and how many create works on the hub.
const writers = 10

// The namespaces on the cluster: of the works, of the same objects without an agent, and of objects that are nobody's.
const (
	namespaceWorks, namespaceBare, namespaceStrangers = "bench-works", "bench-bare", "bench-strangers"
)

func workName(i int) string { return fmt.Sprintf("work-%03d", i) }

func objectName(i, j int) string { return fmt.Sprintf("object-%03d-%02d", i, j) }

func configMap(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string]string{"value": value},
	}
}

func (r *run) work(i int, value string) (*workv1.ManifestWork, error) {
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: workName(i)}}
	for j := range r.Objects {
		raw, err := json.Marshal(configMap(namespaceWorks, objectName(i, j), value))
		if err != nil {
			return nil, fmt.Errorf("encoding an object: %w", err)
		}
		work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return work, nil
}

// spread calls do for 0 to n-1 from several goroutines.
func spread(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// bare writes the objects of all works without an agent, and returns how long that takes.
func (r *run) bare(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	err := spread(ctx, r.Works*r.Objects, func(ctx context.Context, n int) error {
		return r.spoke.Create(ctx, configMap(namespaceBare, objectName(n/r.Objects, n%r.Objects), "0"))
	})
	return time.Since(began), err
}

// bareDelete deletes them again.
func (r *run) bareDelete(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	err := spread(ctx, r.Works*r.Objects, func(ctx context.Context, n int) error {
		return r.spoke.Delete(ctx, configMap(namespaceBare, objectName(n/r.Objects, n%r.Objects), ""))
	})
	return time.Since(began), err
}

// awaitAvailable waits until all works are available, by a watch, and returns when the last one was.
func (r *run) awaitAvailable(ctx context.Context) (time.Time, error) {
	done := map[string]bool{}
	err := r.followWorks(ctx, func(works []workv1.ManifestWork) bool {
		for i := range works {
			if available(&works[i]) {
				done[works[i].Name] = true
			}
		}
		return len(done) == r.Works
	}, func(event watch.Event, work *workv1.ManifestWork) bool {
		if available(work) {
			done[work.Name] = true
		}
		return len(done) == r.Works
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("%d of %d works are available: %w", len(done), r.Works, err)
	}
	return time.Now(), nil
}

// awaitGone waits until no work is left, by a watch.
func (r *run) awaitGone(ctx context.Context) error {
	left := map[string]bool{}
	return r.followWorks(ctx, func(works []workv1.ManifestWork) bool {
		clear(left)
		for i := range works {
			left[works[i].Name] = true
		}
		return len(left) == 0
	}, func(event watch.Event, work *workv1.ManifestWork) bool {
		if event.Type == watch.Deleted {
			delete(left, work.Name)
		}
		return len(left) == 0
	})
}

// followWorks lists and watches the works of the cluster until one of the two says that it is enough. The API server
// ends a watch whose reader is slow for a moment, which on a busy machine it may be; then it begins again.
func (r *run) followWorks(ctx context.Context, listed func([]workv1.ManifestWork) bool,
	seen func(watch.Event, *workv1.ManifestWork) bool,
) error {
	for ctx.Err() == nil {
		var list workv1.ManifestWorkList
		if err := r.hub.List(ctx, &list, client.InNamespace(clusterName)); err != nil {
			return fmt.Errorf("listing the works: %w", err)
		}
		if listed(list.Items) {
			return nil
		}
		events, err := r.hub.Watch(ctx, &workv1.ManifestWorkList{}, client.InNamespace(clusterName),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
		if err != nil {
			return fmt.Errorf("watching the works: %w", err)
		}
		enough := false
		for event := range events.ResultChan() {
			if work, ok := event.Object.(*workv1.ManifestWork); ok && seen(event, work) {
				enough = true
				break
			}
		}
		events.Stop()
		if enough {
			return nil
		}
	}
	return context.Cause(ctx)
}

func available(work *workv1.ManifestWork) bool {
	for _, kind := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		c := meta.FindStatusCondition(work.Status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != work.Generation {
			return false
		}
	}
	return true
}

// createNamespaces makes the namespaces on the cluster.
func (r *run) createNamespaces(ctx context.Context) error {
	for _, name := range []string{namespaceWorks, namespaceBare, namespaceStrangers} {
		if err := r.spoke.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	return nil
}
