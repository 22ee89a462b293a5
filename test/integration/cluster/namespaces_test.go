package cluster_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spokelet/spokelet/test/suite"
)

// hubLabel is the label of the namespaces that the hub manages.
func hubLabel() string {
	sum := sha256.Sum256([]byte(plane.Admin().Host))
	return "clusterset.open-cluster-management.io/" + hex.EncodeToString(sum[:])[:63]
}

// unique makes a name that no other run of a test has.
func unique(name string) string { return name + "-" + rand.String(6) }

// manage plays the hub: it lists namespaces in the status of the cluster, until the test ends.
func manage(t *testing.T, namespaces ...clusterv1.ClusterSetManagedNamespaceConfig) {
	t.Helper()
	set := func(ctx context.Context, list []clusterv1.ClusterSetManagedNamespaceConfig) error {
		var cluster clusterv1.ManagedCluster
		if err := plane.Client.Get(ctx, client.ObjectKey{Name: clusterName}, &cluster); err != nil {
			return err
		}
		cluster.Status.ManagedNamespaces = list
		return plane.Client.Status().Update(ctx, &cluster)
	}
	suite.Eventually(t, func() error { return set(t.Context(), namespaces) })
	t.Cleanup(func() {
		suite.Eventually(t, func() error { return set(context.WithoutCancel(t.Context()), nil) })
	})
}

func entry(set, name string) clusterv1.ClusterSetManagedNamespaceConfig {
	return clusterv1.ClusterSetManagedNamespaceConfig{
		ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: name}, ClusterSet: set,
	}
}

// marked waits until a namespace carries the label of the hub with a value, and returns it.
func marked(t *testing.T, name, value string) *corev1.Namespace {
	t.Helper()
	var namespace corev1.Namespace
	suite.Eventually(t, func() error {
		ctx := t.Context()
		if err := plane.Client.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
			return err
		}
		if have := namespace.Labels[hubLabel()]; have != value {
			return fmt.Errorf("the label is %q in %v", have, namespace.Labels)
		}
		return nil
	})
	return &namespace
}

// told waits until the hub is told of every entry that its namespace is there, or why not.
func told(t *testing.T, want metav1.ConditionStatus, reason string, entries int) {
	t.Helper()
	status(t, func(s clusterv1.ManagedClusterStatus) error {
		if len(s.ManagedNamespaces) != entries {
			return fmt.Errorf("there are %d entries", len(s.ManagedNamespaces))
		}
		for _, e := range s.ManagedNamespaces {
			c := meta.FindStatusCondition(e.Conditions, "NamespaceAvailable")
			if c == nil || c.Status != want || c.Reason != reason {
				return fmt.Errorf("%s of %s: %+v", e.Name, e.ClusterSet, c)
			}
		}
		return nil
	})
}

// Shows: registration/managed-namespaces
func TestNamespacesOfTheHubAreMadeMarkedAndLetGo(t *testing.T) {
	fresh, known := unique("managed-new"), unique("managed-old")
	require.NoError(t, plane.Client.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: known, Labels: map[string]string{"mine": "stays"}},
	}))
	manage(t, entry("set", fresh), entry("set", known), entry("other", known))
	marked(t, fresh, "true")
	old := marked(t, known, "true")
	assert.Equal(t, "stays", old.Labels["mine"])
	told(t, metav1.ConditionTrue, "NamespaceApplied", 3)

	manage(t, entry("set", known))
	marked(t, fresh, "false")
	again := marked(t, known, "true")
	assert.Equal(t, old.UID, again.UID)
	told(t, metav1.ConditionTrue, "NamespaceApplied", 1)

	manage(t, entry("set", fresh))
	marked(t, fresh, "true")
	marked(t, known, "false")
}

func TestAManagedNamespaceIsRepaired(t *testing.T) {
	name := unique("managed-repaired")
	manage(t, entry("set", name))
	first := marked(t, name, "true")
	before := first.DeepCopy()
	delete(first.Labels, hubLabel())
	require.NoError(t, plane.Client.Patch(t.Context(), first, client.MergeFrom(before)))
	marked(t, name, "true")

	// A finalizer holds the namespace on its way out for as long as the test wants to see it.
	hold(t, name, true)
	require.NoError(t, plane.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: first.Name}}))
	told(t, metav1.ConditionFalse, "NamespaceApplyFailed", 1)
	hold(t, name, false)
	suite.Eventually(t, func() error {
		ctx := t.Context()
		var now corev1.Namespace
		if err := plane.Client.Get(ctx, client.ObjectKey{Name: first.Name}, &now); err != nil {
			return err
		}
		if now.UID == first.UID || now.Labels[hubLabel()] != "true" {
			return fmt.Errorf("the namespace is still the old one, or not marked: %v", now.ObjectMeta)
		}
		return nil
	})
	told(t, metav1.ConditionTrue, "NamespaceApplied", 1)
}

// hold puts a finalizer on a namespace or takes it off.
func hold(t *testing.T, name string, on bool) {
	t.Helper()
	suite.Eventually(t, func() error {
		ctx := t.Context()
		var namespace corev1.Namespace
		if err := plane.Client.Get(ctx, client.ObjectKey{Name: name}, &namespace); err != nil {
			return err
		}
		if on {
			controllerutil.AddFinalizer(&namespace, "test.example.com/hold")
		} else {
			controllerutil.RemoveFinalizer(&namespace, "test.example.com/hold")
		}
		return plane.Client.Update(ctx, &namespace)
	})
}

func TestAClusterOnItsWayOutLetsItsNamespacesGo(t *testing.T) {
	name := unique("managed-last")
	manage(t, entry("set", name))
	marked(t, name, "true")
	holdCluster := func(ctx context.Context, on bool) error {
		var cluster clusterv1.ManagedCluster
		if err := plane.Client.Get(ctx, client.ObjectKey{Name: clusterName}, &cluster); err != nil {
			return err
		}
		cluster.Finalizers = nil
		if on {
			cluster.Finalizers = []string{"test.example.com/hold"}
		}
		return plane.Client.Update(ctx, &cluster)
	}
	suite.Eventually(t, func() error { return holdCluster(t.Context(), true) })
	require.NoError(t, plane.Client.Delete(t.Context(),
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}}))
	marked(t, name, "false")
	suite.Eventually(t, func() error { return holdCluster(t.Context(), false) })
	require.NoError(t, plane.Client.Create(t.Context(),
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName}}))
	suite.Eventually(t, func() error { return accept(t.Context()) })
	status(t, isCondition(clusterv1.ManagedClusterConditionJoined, metav1.ConditionTrue,
		"ManagedClusterJoined", "Managed cluster joined"))
}

// Two hubs may manage one namespace; here the other hub is played by its label, put there as its agent would.
func TestTwoHubsShareANamespace(t *testing.T) {
	name, other := unique("managed-shared"), "clusterset.open-cluster-management.io/other"
	manage(t, entry("set", name))
	marked(t, name, "true")
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": name, "labels": map[string]any{other: "true"}},
	}}
	require.NoError(t, plane.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(theirs),
		client.FieldOwner("klusterlet-agent-other"), client.ForceOwnership))
	manage(t)
	assert.Equal(t, "true", marked(t, name, "false").Labels[other])
	manage(t, entry("set", name))
	assert.Equal(t, "true", marked(t, name, "true").Labels[other])
}
