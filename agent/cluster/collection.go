package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/watch"
)

// collection keeps one value for each object of a resource of the managed cluster. Until the first list, and while the
// API server forbids the watch, the objects are unknown.
type collection[T comparable] struct {
	watch.Store[*unstructured.Unstructured, T]
	// description names the objects in logs.
	description string
	// labelSelector and fieldSelector restrict the objects; empty means all.
	labelSelector, fieldSelector string
	// changed is called after every change of the values, and must not block.
	changed func()
	// forbidden is set while the API server forbids the watch.
	forbidden atomic.Bool
}

// newCollection returns the collection of the values that keep returns. An object for which keep fails is left out, and
// the log has the error.
func newCollection[T comparable](
	description string, keep func(*unstructured.Unstructured) (T, error), changed func(),
) *collection[T] {
	c := &collection[T]{description: description, changed: changed}
	c.Keep = func(ctx context.Context, object *unstructured.Unstructured) (T, bool) {
		value, err := keep(object)
		if err != nil {
			log.FromContext(ctx).Info("left out", "watch", description, "name", object.GetName(), "reason", err.Error())
		}
		return value, err == nil
	}
	c.Changed = func([]types.NamespacedName) { changed() }
	return c
}

// run lists and watches until ctx ends.
func (c *collection[T]) run(ctx context.Context, client dynamic.Interface, resource dynamic.ResourceInterface) {
	source := watch.From(client, resource.List, resource.Watch)
	source.LabelSelector, source.FieldSelector = c.labelSelector, c.fieldSelector
	one := watch.Watch[*unstructured.Unstructured]{
		Name: "agent.cluster", Description: c.description, Source: source, Handler: c,
		Refused: func(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) },
		Ended:   func(err error) { c.ended(ctx, err) },
	}
	one.Run(ctx)
}

// Replace implements watch.Handler.
func (c *collection[T]) Replace(ctx context.Context, objects []*unstructured.Unstructured, version string) {
	c.setForbidden(false)
	c.Store.Replace(ctx, objects, version)
}

// ended records the end of the watch. After most errors the values stay as they were last seen.
func (c *collection[T]) ended(ctx context.Context, err error) {
	switch {
	case apierrors.IsNotFound(err):
		c.setForbidden(false)
		c.Clear(true) // a resource that is not served has no objects
	case apierrors.IsForbidden(err):
		c.Clear(false)
		if c.setForbidden(true) {
			log.FromContext(ctx).Info("the managed cluster does not let the agent watch; grant list and watch",
				"watch", c.description, "error", err.Error())
		}
	}
}

// setForbidden sets forbidden and reports whether it changed.
func (c *collection[T]) setForbidden(forbidden bool) bool {
	if c.forbidden.Swap(forbidden) == forbidden {
		return false
	}
	c.changed()
	return true
}

// StripNode is the cache transform for Nodes. It keeps the fields that this package and caches read (name, capacity,
// allocatable and unschedulable) and drops the rest, which is nearly all of a Node. Other objects pass unchanged.
func StripNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Spec:       corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable},
		Status:     corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}, nil
}

// nodeChanged passes the events of Nodes that change the sums; the periodic reports of a kubelet do not.
func nodeChanged() predicate.TypedPredicate[*corev1.Node] {
	return predicate.TypedFuncs[*corev1.Node]{
		UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
			before, after := e.ObjectOld, e.ObjectNew
			return before.Spec.Unschedulable != after.Spec.Unschedulable ||
				!equality.Semantic.DeepEqual(before.Status.Capacity, after.Status.Capacity) ||
				!equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
		},
	}
}

// resources are the sums over the nodes of a cluster.
type resources struct {
	capacity, allocatable clusterv1.ResourceList
}

// sum adds up the nodes: capacity over all of them, allocatable over the schedulable ones. A resource that no node
// reports is not in the sum. The order of the nodes does not matter.
func sum(nodes []corev1.Node) resources {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	total := resources{capacity: clusterv1.ResourceList{}, allocatable: clusterv1.ResourceList{}}
	for i := range nodes {
		add(total.capacity, nodes[i].Status.Capacity)
		if !nodes[i].Spec.Unschedulable {
			add(total.allocatable, nodes[i].Status.Allocatable)
		}
	}
	return total
}

func add(total clusterv1.ResourceList, more corev1.ResourceList) {
	for name, quantity := range more {
		have := total[clusterv1.ResourceName(name)]
		have.Add(quantity)
		total[clusterv1.ResourceName(name)] = have
	}
}

// Values of the label of a managed namespace.
const (
	managedTrue  = "true"
	managedFalse = "false"
)

// namespaces is the resource of Namespaces.
func namespaces() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

// managedLabel is the key of the label of the namespaces that a hub manages on the spoke
// (docs/reference/registration.md, "Names"). A label can hold 63 of the 64 characters of the hash.
func managedLabel(hubURL string) string {
	sum := sha256.Sum256([]byte(hubURL))
	return "clusterset.open-cluster-management.io/" + hex.EncodeToString(sum[:])[:63]
}

// namespace is the value kept of a Namespace that has the label.
type namespace struct {
	name, label string
	// deleting is set while it is being deleted.
	deleting bool
}

// newNamespaces returns the Namespaces that have a label; changed is called when they change.
func newNamespaces(label string, changed func()) *collection[namespace] {
	c := newCollection("namespaces of the hub", func(object *unstructured.Unstructured) (namespace, error) {
		return namespace{
			name: object.GetName(), label: object.GetLabels()[label], deleting: object.GetDeletionTimestamp() != nil,
		}, nil
	}, changed)
	c.labelSelector = label
	return c
}

// marking is a step that sets the label of the hub on a Namespace to whether it is managed. A managed Namespace that is
// missing is created.
type marking struct {
	name    string
	managed bool
}

// markings compares the namespaces that the hub manages with those that have its label. While the latter are unknown,
// have is empty: then all namespaces that the hub manages are marked, which is always right, and no others.
func markings(wanted []clusterv1.ClusterSetManagedNamespaceConfig, have []namespace) []marking {
	marked := map[string]namespace{}
	for _, n := range have {
		marked[n.name] = n
	}
	names := map[string]bool{}
	for _, w := range wanted {
		names[w.Name] = true
	}
	var steps []marking
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if n := marked[name]; n.label != managedTrue && !n.deleting {
			steps = append(steps, marking{name: name, managed: true})
		}
	}
	for _, n := range have {
		if !names[n.name] && n.label != managedFalse && !n.deleting {
			steps = append(steps, marking{name: n.name})
		}
	}
	return steps
}

const (
	// labelSpokeOnly on a ClusterClaim or ClusterProperty keeps it on the spoke; its value does not matter.
	labelSpokeOnly = "open-cluster-management.io/spoke-only"
	// DefaultMaxCustomClaims is the number of claims that are reported besides the reserved ones.
	DefaultMaxCustomClaims = 20
	// maxClaimValue is the number of characters that the API of the hub accepts as the value of a claim.
	maxClaimValue = 1024
)

// clusterClaims is the resource of ClusterClaims, a kind of the cluster API.
func clusterClaims() schema.GroupResource {
	return schema.GroupResource{Group: clusterv1alpha1.GroupName, Resource: "clusterclaims"}
}

// clusterProperties is the resource of ClusterProperties, a kind of Kubernetes' multi-cluster API.
func clusterProperties() schema.GroupResource {
	return schema.GroupResource{Group: "about.k8s.io", Resource: "clusterproperties"}
}

// claim is the value kept of a ClusterClaim or a ClusterProperty.
type claim struct {
	name, value string
	// hidden is set when it is not reported to the hub.
	hidden bool
}

// claimOf reads a ClusterClaim or ClusterProperty. A value that the hub would reject is an error: the hub would reject
// the whole status with it, including the health of the cluster.
func claimOf(object *unstructured.Unstructured) (claim, error) {
	if _, hidden := object.GetLabels()[labelSpokeOnly]; hidden {
		return claim{name: object.GetName(), hidden: true}, nil
	}
	value, _, err := unstructured.NestedString(object.Object, "spec", "value")
	switch length := utf8.RuneCountInString(value); {
	case err != nil:
		return claim{}, fmt.Errorf("reading its value: %w", err)
	case length == 0:
		return claim{}, errors.New("it has no value")
	case length > maxClaimValue:
		return claim{}, fmt.Errorf("its value has %d characters, and the hub takes %d at most", length, maxClaimValue)
	}
	return claim{name: object.GetName(), value: value}, nil
}

// ClaimRules select the claims that are reported.
type ClaimRules struct {
	// MaxCustom is the number of claims that are reported besides the reserved ones.
	MaxCustom int
	// ReservedSuffixes are endings of names that are reserved besides the names of the cluster API.
	ReservedSuffixes []string
	// AgentVersion is reported as names.ClaimAgentVersion; empty means that it is not.
	AgentVersion string
}

// report returns the claims of the ManagedCluster for the ClusterClaims and ClusterProperties of the spoke: the
// reserved ones first, then the others up to the limit, both ordered by name. A property replaces a claim of the same
// name unless it is hidden.
func (r ClaimRules) report(claims, properties []claim) []clusterv1.ManagedClusterClaim {
	merged := map[string]string{}
	for _, c := range slices.Concat(claims, properties) {
		if !c.hidden {
			merged[c.name] = c.value
		}
	}
	if r.AgentVersion != "" {
		merged[names.ClaimAgentVersion] = r.AgentVersion
	}
	var reserved, custom []clusterv1.ManagedClusterClaim
	for name, value := range merged {
		reported := clusterv1.ManagedClusterClaim{Name: name, Value: value}
		if r.isReserved(name) {
			reserved = append(reserved, reported)
		} else {
			custom = append(custom, reported)
		}
	}
	byName := func(a, b clusterv1.ManagedClusterClaim) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(reserved, byName)
	slices.SortFunc(custom, byName)
	return slices.Concat(reserved, custom[:min(len(custom), max(r.MaxCustom, 0))])
}

func (r ClaimRules) isReserved(name string) bool {
	return slices.Contains(clusterv1alpha1.ReservedClusterClaimNames[:], name) || name == names.ClaimHostingCluster ||
		name == names.ClaimAgentVersion ||
		slices.ContainsFunc(r.ReservedSuffixes, func(suffix string) bool {
			return suffix != "" && strings.HasSuffix(name, suffix)
		})
}
