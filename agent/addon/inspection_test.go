package addon

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"open-cluster-management.io/api/addon/v1beta1"
)

// crowd is a cluster with many add-ons that have no lease, and counts the requests at each instant.
type crowd struct {
	cluster.Cluster
	reader client.Reader
	mu     sync.Mutex
	now    time.Time
	sent   map[time.Time]int
	total  int
}

// GetAPIReader implements cluster.Cluster.
func (c *crowd) GetAPIReader() client.Reader { return c.reader }

func (c *crowd) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[c.now.Truncate(time.Second)]++
	c.total++
}

func newCrowd(namespaces ...client.Object) *crowd {
	c := &crowd{sent: map[time.Time]int{}}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	for _, kind := range []string{"Pod"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		mapper.Add(appsv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	c.reader = interceptor.NewClient(fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(namespaces...).Build(),
		interceptor.Funcs{
			Get: func(
				ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
			) error {
				c.count()
				return w.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				c.count()
				return w.List(ctx, list, opts...)
			},
		})
	return c
}

// live lets add-ons without a lease exist for a while, the number of each and its namespace from where.
func (c *crowd) live(t *testing.T, addons int, namespace func(n int) string, until time.Duration) []facts {
	t.Helper()
	r := &Reconciler{sides: map[side]cluster.Cluster{sideAgent: c}}
	last := make([]facts, addons)
	for c.now = noon; c.now.Before(noon.Add(until)); c.now = c.now.Add(50 * time.Millisecond) {
		for n := range addons {
			if !last[n].now.IsZero() && c.now.Before(last[n].nextInspection) {
				continue
			}
			f := addonWith()
			f.name, f.now, f.lease = fmt.Sprintf("a%d", n), c.now, observation{known: true}
			f.addon.Status.Namespace, f.addon.Status.HealthCheck.Mode = namespace(n), v1beta1.HealthCheckModeLease
			r.observeSnapshot(t.Context(), &f)
			require.True(t, f.nextInspection.After(c.now), "there is always a pause")
			last[n] = f
		}
	}
	return last
}

func TestAHundredAddonsOfOneNamespaceAreLookedAtTogether(t *testing.T) {
	pod := waits("a7-0", "ErrImagePull", "not found")
	pod.Namespace = "ns"
	c := newCrowd(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, &pod)
	last := c.live(t, 100, func(int) string { return "ns" }, time.Minute)
	// Looks at 2, 7, 17 and 37 seconds, with four requests each.
	assert.LessOrEqual(t, c.total, 16)
	assert.Contains(t, snapshotCause(last[7].snapshot, "ns"), "Pod ns/a7-0: image")
	assert.Contains(t, snapshotCause(last[8].snapshot, "ns"), "a7-0", "each sees the namespace with its own eyes")
	assert.NotEqual(t, last[7].snapshot, last[8].snapshot)
}

func TestAHundredNamespacesAreLookedAtOneAfterTheOther(t *testing.T) {
	var namespaces []client.Object
	name := func(n int) string { return fmt.Sprintf("ns%d", n) }
	for n := range 100 {
		namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name(n)}})
	}
	c := newCrowd(namespaces...)
	last := c.live(t, 100, name, time.Minute)
	for at, sent := range c.sent {
		assert.LessOrEqual(t, sent, 24, "in the second at %s", at.Sub(noon))
	}
	for n, f := range last {
		assert.True(t, f.snapshot.taken, "add-on %d was looked at", n)
	}
}
