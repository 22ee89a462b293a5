package reconcile

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestSetCondition(t *testing.T) {
	before := metav1.NewTime(now.Add(-time.Hour))
	stored := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", Message: "all fine", ObservedGeneration: 3,
		LastTransitionTime: before,
	}
	for name, tc := range map[string]struct {
		change  func(*metav1.Condition)
		changed bool
		moved   bool
	}{
		"the same changes nothing": {change: func(*metav1.Condition) {}},
		"another time is no change": {change: func(c *metav1.Condition) {
			c.LastTransitionTime = metav1.NewTime(now.Add(time.Minute))
		}},
		"another message":    {change: func(c *metav1.Condition) { c.Message = "still fine" }, changed: true},
		"another reason":     {change: func(c *metav1.Condition) { c.Reason = "Good" }, changed: true},
		"another generation": {change: func(c *metav1.Condition) { c.ObservedGeneration = 4 }, changed: true},
		"another status": {change: func(c *metav1.Condition) { c.Status = metav1.ConditionUnknown },
			changed: true, moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			other := metav1.Condition{Type: "Other", Status: metav1.ConditionFalse, LastTransitionTime: before}
			conditions := []metav1.Condition{other, stored}
			want := stored
			tc.change(&want)
			assert.Equal(t, tc.changed, SetCondition(&conditions, want, now))
			require.Len(t, conditions, 2)
			assert.Equal(t, other, conditions[0])
			want.LastTransitionTime = before
			if tc.moved {
				want.LastTransitionTime = metav1.NewTime(now)
			}
			assert.Equal(t, want, conditions[1])
			assert.False(t, SetCondition(&conditions, want, now.Add(time.Minute)), "a second time changes nothing")
		})
	}
	t.Run("a new one is added with its time", func(t *testing.T) {
		var conditions []metav1.Condition
		assert.True(t, SetCondition(&conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse}, now))
		require.Len(t, conditions, 1)
		assert.Equal(t, metav1.NewTime(now), conditions[0].LastTransitionTime)
	})
	t.Run("a missing time is filled in", func(t *testing.T) {
		conditions := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
		assert.True(t, SetCondition(&conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue}, now))
		assert.Equal(t, metav1.NewTime(now), conditions[0].LastTransitionTime)
	})
}

func cluster(change func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: "c1", UID: "u1", ResourceVersion: "7", Labels: map[string]string{"a": "1", "b": "2"},
			Finalizers: []string{"f1", "f2"},
		},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 60},
		Status: clusterv1.ManagedClusterStatus{
			Version:    clusterv1.ManagedClusterVersion{Kubernetes: "v1.35.4"},
			Conditions: []metav1.Condition{{Type: "A", Status: metav1.ConditionTrue, Reason: "R"}},
		},
	}
	if change != nil {
		change(c)
	}
	return c
}

func TestGuardedPatch(t *testing.T) {
	const guard = `"metadata":{"resourceVersion":"7","uid":"u1"}`
	for name, tc := range map[string]struct {
		change       func(*clusterv1.ManagedCluster)
		status, main string
	}{
		"nothing": {change: nil},
		"a field of the status": {
			change: func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v1.36.0" },
			status: `{` + guard + `,"status":{"version":{"kubernetes":"v1.36.0"}}}`,
		},
		"a field of the status that goes": {
			change: func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "" },
			status: `{` + guard + `,"status":{"version":{"kubernetes":null}}}`,
		},
		"a condition that goes": {
			change: func(c *clusterv1.ManagedCluster) { c.Status.Conditions = nil },
			status: `{` + guard + `,"status":{"conditions":null}}`,
		},
		"a field of the spec": {
			change: func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 30 },
			main:   `{` + guard + `,"spec":{"leaseDurationSeconds":30}}`,
		},
		"a label that goes": {
			change: func(c *clusterv1.ManagedCluster) { delete(c.Labels, "a") },
			main:   `{"metadata":{"labels":{"a":null},"resourceVersion":"7","uid":"u1"}}`,
		},
		"a finalizer that goes": {
			change: func(c *clusterv1.ManagedCluster) { c.Finalizers = c.Finalizers[:1] },
			main:   `{"metadata":{"finalizers":["f1"],"resourceVersion":"7","uid":"u1"}}`,
		},
		"both at once, each by its own": {
			change: func(c *clusterv1.ManagedCluster) {
				c.Spec.HubAcceptsClient = false
				c.Status.Version.Kubernetes = "v1.36.0"
			},
			status: `{` + guard + `,"status":{"version":{"kubernetes":"v1.36.0"}}}`,
			main:   `{` + guard + `,"spec":{"hubAcceptsClient":false}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for only, want := range map[string]string{"status": tc.status, "": tc.main} {
				patch, err := guardedPatch(cluster(nil), cluster(tc.change), only)
				require.NoError(t, err)
				if want == "" {
					assert.Nil(t, patch, "only %q", only)
					continue
				}
				assert.JSONEq(t, want, string(patch), "only %q", only)
			}
		})
	}
}

func TestPatchesAreGuardedByTheCopyThatWasRead(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1.Install(scheme))
	ctx := t.Context()
	newClient := func(t *testing.T) (client.Client, *clusterv1.ManagedCluster) {
		t.Helper()
		c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&clusterv1.ManagedCluster{}).
			WithObjects(cluster(func(c *clusterv1.ManagedCluster) { c.ResourceVersion = "" })).Build()
		var read clusterv1.ManagedCluster
		require.NoError(t, c.Get(ctx, client.ObjectKey{Name: "c1"}, &read))
		return c, &read
	}
	patches := map[string]struct {
		patch  func(context.Context, client.Client, client.Object, client.Object) (bool, error)
		change func(*clusterv1.ManagedCluster)
	}{
		"PatchStatus": {PatchStatus, func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v2" }},
		"PatchMain":   {PatchMain, func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 99 }},
	}
	for name, tc := range patches {
		t.Run(name+" writes once and learns the answer", func(t *testing.T) {
			c, before := newClient(t)
			after := before.DeepCopy()
			tc.change(after)
			wrote, err := tc.patch(ctx, c, before, after)
			require.NoError(t, err)
			assert.True(t, wrote)
			assert.NotEqual(t, before.ResourceVersion, after.ResourceVersion)
			wrote, err = tc.patch(ctx, c, after, after.DeepCopy())
			require.NoError(t, err)
			assert.False(t, wrote, "no difference, no write")
		})
		t.Run(name+" loses against a writer that was faster", func(t *testing.T) {
			c, before := newClient(t)
			winner := before.DeepCopy()
			winner.Labels["won"] = "yes"
			require.NoError(t, c.Update(ctx, winner))
			after := before.DeepCopy()
			tc.change(after)
			wrote, err := tc.patch(ctx, c, before, after)
			require.Error(t, err)
			assert.False(t, wrote)
			assert.True(t, apierrors.IsConflict(err), "the API error stays visible: %v", err)
			assert.Equal(t, ClassLostRace, FromError(err).Class())
		})
	}
}

func TestObjectsWithoutAKindAreNamedByTheirType(t *testing.T) {
	assert.Equal(t, "Secret", kindOf(&corev1.Secret{}))
	assert.Equal(t, "Secret", kindOf(&corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret"}}))
}

func TestAPatchIsValidJSONOfAnyStatus(t *testing.T) {
	odd := cluster(func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "a\"\u2028\x00<" })
	patch, err := guardedPatch(cluster(nil), odd, "status")
	require.NoError(t, err)
	var decoded struct {
		Status clusterv1.ManagedClusterStatus
	}
	require.NoError(t, json.Unmarshal(patch, &decoded))
	assert.Equal(t, odd.Status.Version, decoded.Status.Version)
}

func BenchmarkPatch(b *testing.B) {
	changed := cluster(func(c *clusterv1.ManagedCluster) {
		c.Status.Version.Kubernetes, c.Spec.LeaseDurationSeconds = "v1.36.0", 30
	})
	for name, after := range map[string]*clusterv1.ManagedCluster{"nothing": cluster(nil), "one field": changed} {
		for only, of := range map[string]string{statusField: "status", "": "main"} {
			b.Run(name+" of the "+of, func(b *testing.B) {
				before := cluster(nil)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := guardedPatch(before, after, only); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
