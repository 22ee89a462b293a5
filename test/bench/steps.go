package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/bench/measure"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// settled is how long nothing may be asked before the agent counts as at rest.
const settled = 3 * time.Second

// rest waits until the agent is at rest, and measures its memory then and after Options.Idle.
func (r *run) rest(ctx context.Context) error {
	if err := r.createNamespaces(ctx); err != nil {
		return err
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	if err := r.noteMemory("memory after the start", 0); err != nil {
		return err
	}
	if !fleet.Pause(ctx, r.Idle) {
		return context.Cause(ctx)
	}
	if err := r.noteMemory(fmt.Sprintf("memory %s after the last request, joined, no works", r.Idle), 32); err != nil {
		return err
	}
	return r.noteProgram(30)
}

// apply has all works applied at once, beside the same objects written bare.
func (r *run) apply(ctx context.Context) error {
	bare, err := r.bare(ctx)
	if err != nil {
		return fmt.Errorf("writing bare: %w", err)
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	before, err := r.requests()
	if err != nil {
		return err
	}
	began := time.Now()
	created := make(chan error, 1)
	go func() {
		created <- spread(ctx, r.Works, func(ctx context.Context, i int) error {
			work, err := r.work(i, "0")
			if err != nil {
				return err
			}
			return r.hub.Create(ctx, work)
		})
	}()
	ended, err := r.awaitAvailable(ctx)
	if err != nil {
		return err
	}
	if err := <-created; err != nil {
		return fmt.Errorf("creating the works: %w", err)
	}
	name := fmt.Sprintf("%d works x %d objects until all are available", r.Works, r.Objects)
	r.applied = ended.Sub(began)
	r.noteRatio(name, r.applied, bare, 1.5)
	if err := r.take(ctx); err != nil {
		return err
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	n, err := r.requestsSince(before)
	if err != nil {
		return err
	}
	per := float64(n) / float64(r.Works*r.Objects)
	r.table.Note("requests to the cluster per object applied", fmt.Sprintf("%.2f", per), "1.2", per <= 1.205)
	return r.noteMemory(fmt.Sprintf("memory right after %d objects were applied", r.Works*r.Objects), 48)
}

// change changes one work again and again and measures until its object says so.
func (r *run) change(ctx context.Context) error {
	name := objectName(r.Works/2, 0)
	events, err := r.watchObject(ctx, name)
	if err != nil {
		return err
	}
	defer events.Stop()
	var took, wrote []time.Duration
	for n := range r.Changes {
		value := fmt.Sprintf("change-%d", n)
		next, err := r.work(r.Works/2, "0")
		if err != nil {
			return err
		}
		changed, err := r.work(r.Works/2, value)
		if err != nil {
			return err
		}
		next.Spec.Workload.Manifests[0] = changed.Spec.Workload.Manifests[0]
		var have workv1.ManifestWork
		if err := r.hub.Get(ctx, client.ObjectKeyFromObject(next), &have); err != nil {
			return fmt.Errorf("reading the work: %w", err)
		}
		after := have.DeepCopy()
		after.Spec.Workload = next.Spec.Workload
		began := time.Now()
		if err := r.hub.Patch(ctx, after, client.MergeFrom(&have)); err != nil {
			return fmt.Errorf("changing the work: %w", err)
		}
		wrote = append(wrote, time.Since(began))
		applied := func(e watch.Event) bool { return e.Type != watch.Deleted && valueOf(e) == value }
		if err := fleet.AwaitEvent(ctx, events, applied); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	r.notePercentiles("one change to applied", took, 50*time.Millisecond, 100*time.Millisecond)
	r.notePercentiles("of that, until the hub has taken the change", wrote, 0, 0)
	return r.quiet(ctx)
}

// disturb changes and deletes objects on the cluster again and again, and measures until they are as they were. It goes
// round the objects, since an agent may be slow on purpose with one that is disturbed all the time.
func (r *run) disturb(ctx context.Context) error {
	for _, kind := range []struct {
		name string
		do   func(ctx context.Context, name string) error
	}{
		{"drift by a change to repaired", func(ctx context.Context, name string) error {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"hacked"}}`))
			return r.spoke.Patch(ctx, configMap(namespaceWorks, name, ""), patch)
		}},
		{"drift by a deletion to repaired", func(ctx context.Context, name string) error {
			return r.spoke.Delete(ctx, configMap(namespaceWorks, name, ""))
		}},
	} {
		var took []time.Duration
		for n := range r.Changes {
			name := objectName(n%(r.Works/2), 1)
			lasted, err := r.disturbOne(ctx, name, kind.do)
			if err != nil {
				return err
			}
			took = append(took, lasted)
		}
		r.notePercentiles(kind.name, took, 0, 250*time.Millisecond)
	}
	return r.quiet(ctx)
}

func (r *run) disturbOne(
	ctx context.Context, name string, do func(ctx context.Context, name string) error,
) (time.Duration, error) {
	events, err := r.watchObject(ctx, name)
	if err != nil {
		return 0, err
	}
	defer events.Stop()
	began := time.Now()
	if err := do(ctx, name); err != nil {
		return 0, fmt.Errorf("disturbing %s: %w", name, err)
	}
	disturbed := false
	err = fleet.AwaitEvent(ctx, events, func(e watch.Event) bool {
		if e.Type == watch.Deleted || valueOf(e) == "hacked" {
			disturbed = true
			return false
		}
		return disturbed && valueOf(e) == "0"
	})
	return time.Since(began), err
}

// watchObject watches one object on the cluster, from now on.
func (r *run) watchObject(ctx context.Context, name string) (watch.Interface, error) {
	var list corev1.ConfigMapList
	one := client.MatchingFields{"metadata.name": name}
	if err := r.spoke.List(ctx, &list, client.InNamespace(namespaceWorks), one); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	events, err := r.spoke.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespaceWorks), one,
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", name, err)
	}
	return events, nil
}

func valueOf(e watch.Event) string {
	if object, ok := e.Object.(*corev1.ConfigMap); ok {
		return object.Data["value"]
	}
	return ""
}

// idle leaves the agent alone and counts what it does nevertheless.
func (r *run) idle(ctx context.Context) error {
	sent, err := r.requests()
	if err != nil {
		return err
	}
	before, err := r.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	if !fleet.Pause(ctx, r.Idle) {
		return context.Cause(ctx)
	}
	after, err := r.cpu()
	if err != nil {
		return err
	}
	n, err := r.requestsSince(sent)
	if err != nil {
		return err
	}
	r.table.Note(fmt.Sprintf("requests over %s at rest, leases and watches aside", r.Idle), fmt.Sprint(n), "0", n == 0)
	milli := 1000 * float64(after-before) / float64(time.Since(began))
	r.table.Note("processor at rest", fmt.Sprintf("%.1fm", milli), "2m", milli <= 2)
	return r.noteMemory(fmt.Sprintf("memory %s after the last request, %d objects", r.Idle, r.Works*r.Objects), 44)
}

// strangers puts ten thousand objects that are nobody's beside those of the works.
func (r *run) strangers(ctx context.Context) error {
	before, err := measure.Resident(r.cluster.Agent.PID())
	if err != nil {
		return err
	}
	const each = 5000
	err = spread(ctx, 2*each, func(ctx context.Context, n int) error {
		name := fmt.Sprintf("stranger-%05d", n)
		if n%2 == 0 {
			return r.spoke.Create(ctx, configMap(namespaceStrangers, name, strings.Repeat("x", 500)))
		}
		return r.spoke.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaceStrangers, Name: name},
			Data:       map[string][]byte{"value": []byte(strings.Repeat("x", 500))},
		})
	})
	if err != nil {
		return fmt.Errorf("creating strangers: %w", err)
	}
	if !fleet.Pause(ctx, settled) {
		return context.Cause(ctx)
	}
	after, err := measure.Resident(r.cluster.Agent.PID())
	if err != nil {
		return err
	}
	more := (after.Resident() - before.Resident()) / measure.Mebibyte
	r.table.Note("memory for 10,000 Secrets and ConfigMaps that are nobody's", fmt.Sprintf("%+.1f MiB", more), "+10 MiB",
		more <= 10)
	return nil
}

// remove deletes all works at once, beside the same objects deleted bare.
func (r *run) remove(ctx context.Context) error {
	bare, err := r.bareDelete(ctx)
	if err != nil {
		return fmt.Errorf("deleting bare: %w", err)
	}
	if err := r.quiet(ctx); err != nil {
		return err
	}
	began := time.Now()
	deleted := make(chan error, 1)
	go func() {
		deleted <- spread(ctx, r.Works, func(ctx context.Context, i int) error {
			work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: clusterName, Name: workName(i)}}
			return r.hub.Delete(ctx, work)
		})
	}()
	if err := r.awaitGone(ctx); err != nil {
		return fmt.Errorf("waiting for everything to be gone: %w", err)
	}
	r.removed = time.Since(began)
	if err := <-deleted; err != nil {
		return fmt.Errorf("deleting the works: %w", err)
	}
	r.noteRatio("everything deleted until nothing is left", r.removed, bare, 2)
	var left corev1.ConfigMapList
	if err := r.spoke.List(ctx, &left, client.InNamespace(namespaceWorks)); err != nil {
		return fmt.Errorf("looking for what is left: %w", err)
	}
	left.Items = slices.DeleteFunc(left.Items, func(c corev1.ConfigMap) bool { return c.Name == "kube-root-ca.crt" })
	r.table.Note("objects left after that", fmt.Sprint(len(left.Items)), "0", len(left.Items) == 0)
	return r.noteMemory("memory at the end", 48)
}
