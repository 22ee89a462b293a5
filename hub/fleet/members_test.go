package fleet

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig/fixture"
)

// hub is an API server that counts what is read of it, and fails on demand.
type hub struct {
	client.WithWatch
	reads int
	fails error
	// during happens while an object is read.
	during func()
}

func newHub(t *testing.T, clusters int) *hub {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, addonv1beta1.Install(scheme))
	h := &hub{}
	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&addonv1beta1.ManagedClusterAddOn{}, addonapi.IndexName, func(o client.Object) []string {
			return []string{o.GetName()}
		})
	for n := range clusters {
		builder = builder.WithObjects(fixture.AddOn(fmt.Sprintf("c%d", n)))
	}
	h.WithWatch = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
			h.reads++
			return errors.Join(h.fails, c.Get(ctx, key, o))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			h.reads++
			err := c.List(ctx, list)
			if h.during != nil {
				h.during()
			}
			return errors.Join(h.fails, err)
		},
	})
	return h
}

// count is a member that counts how often it was seen.
func count(_ *addonv1beta1.ManagedClusterAddOn, before int) int { return before + 1 }

// Shows: hub/fleet-read-once
func TestAFleetIsReadOnceAndThenWhatChanged(t *testing.T) {
	h, m := newHub(t, 3), &Members[int]{}
	addOns := addonapi.Client{Client: h, Wire: addonapi.WireBeta}
	read := func() (map[string]int, []Change[int]) {
		all, changes, err := m.Read(t.Context(), addOns, "hello", count)
		require.NoError(t, err)
		return all, changes
	}
	gone, late := fixture.AddOn("c1"), fixture.AddOn("late")
	h.during = func() { m.Note(late) }
	all, changes := read()
	assert.Equal(t, map[string]int{"c0": 1, "c1": 1, "c2": 1}, all)
	assert.Len(t, changes, 3)
	require.NoError(t, h.Create(t.Context(), late))
	all, changes = read()
	assert.Equal(t, map[string]int{"c0": 1, "c1": 1, "c2": 1, "late": 1}, all, "what changes during a read is not lost")
	assert.Equal(t, []Change[int]{{After: 1}}, changes)

	require.NoError(t, h.Delete(t.Context(), gone))
	m.Note(gone)
	m.Note(fixture.AddOn("c2"))
	before := h.reads
	h.fails = errors.New("the cache has not started")
	_, _, err := m.Read(t.Context(), addOns, "hello", count)
	require.ErrorIs(t, err, h.fails)
	h.fails = nil
	all, changes = read()
	assert.Equal(t, map[string]int{"c0": 1, "c2": 2, "late": 1}, all, "what could not be read is read again")
	assert.ElementsMatch(t, []Change[int]{{Before: 1}, {Before: 1, After: 2}}, changes)
	assert.LessOrEqual(t, h.reads-before, 4)
	before = h.reads
	_, changes = read()
	assert.Empty(t, changes)
	assert.Equal(t, before, h.reads, "nothing changed, so nothing is read")

	for cluster := range all {
		o := &addonv1beta1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "hello"}}
		require.NoError(t, h.Delete(t.Context(), o))
		m.Note(o)
	}
	all, _ = read()
	assert.Empty(t, all)
	assert.Empty(t, m.known, "nothing is remembered of what is gone")
	assert.Empty(t, m.noted)
	m.Note(late)
	assert.Empty(t, m.noted, "nobody asked about it")
}
