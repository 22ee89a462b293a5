package addon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// ClusterFact returns a text that differs when a fact of a cluster does.
type ClusterFact func(cluster *clusterv1.ManagedCluster) string

// ClusterAnnotations are the annotations of a cluster with these names.
func ClusterAnnotations(keys ...string) ClusterFact {
	return func(cluster *clusterv1.ManagedCluster) string { return selected(cluster.Annotations, keys) }
}

// ClusterLabels are the labels of a cluster with these names.
func ClusterLabels(keys ...string) ClusterFact {
	return func(cluster *clusterv1.ManagedCluster) string { return selected(cluster.Labels, keys) }
}

// ClusterClaims are the claims of a cluster with these names.
func ClusterClaims(keys ...string) ClusterFact {
	return func(cluster *clusterv1.ManagedCluster) string { return selected(claimsOf(cluster), keys) }
}

// ClusterConditions are the statuses of the conditions of a cluster with these types.
func ClusterConditions(types ...string) ClusterFact {
	return func(cluster *clusterv1.ManagedCluster) string {
		statuses := map[string]string{}
		for _, kind := range types {
			if condition := meta.FindStatusCondition(cluster.Status.Conditions, kind); condition != nil {
				statuses[kind] = string(condition.Status)
			}
		}
		return selected(statuses, types)
	}
}

// selected returns entries as text.
func selected(entries map[string]string, keys []string) string {
	var all strings.Builder
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if value, found := entries[key]; found {
			fmt.Fprintf(&all, "%q=%q,", key, value)
		}
	}
	return all.String()
}

func claimsOf(cluster *clusterv1.ManagedCluster) map[string]string {
	claims := make(map[string]string, len(cluster.Status.ClusterClaims))
	for _, claim := range cluster.Status.ClusterClaims {
		claims[claim.Name] = claim.Value
	}
	return claims
}

const (
	// prefixOwn starts what the hub manager notes down.
	prefixOwn = "addon.spokelet.io/"
	// prefixApply starts what kubectl notes down.
	prefixApply = "kubectl.kubernetes.io/"
)

// without returns the entries whose keys begin with none of the prefixes; never nil, which would be encoded otherwise.
func without(entries map[string]string, prefixes ...string) map[string]string {
	kept := make(map[string]string, len(entries))
	maps.Copy(kept, entries)
	maps.DeleteFunc(kept, func(key, _ string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	return kept
}

// SameFacts reports whether a cluster has the labels, annotations and claims, and the Kubernetes version, that it had
// before, without those that change with the health of add-ons. Together with the statuses of its conditions, that is
// all that a ClusterFact may use.
func SameFacts(before, after *clusterv1.ManagedCluster) bool {
	return before.Status.Version == after.Status.Version &&
		maps.Equal(without(before.Labels, names.PrefixFeature), without(after.Labels, names.PrefixFeature)) &&
		maps.Equal(without(before.Annotations, prefixApply), without(after.Annotations, prefixApply)) &&
		maps.Equal(claimsOf(before), claimsOf(after))
}

// facts returns what counts of a cluster.
func (a *author) facts(cluster *clusterv1.ManagedCluster) []any {
	if cluster == nil {
		return nil
	}
	all := []any{
		cluster.Name, cluster.Status.Version.Kubernetes, cluster.Annotations[names.AnnotationImageRegistries],
	}
	if a.ClusterFacts == nil {
		return append(all, without(cluster.Labels, names.PrefixFeature), without(cluster.Annotations, prefixApply),
			claimsOf(cluster))
	}
	for _, fact := range a.ClusterFacts {
		all = append(all, fact(cluster))
	}
	return all
}

// key identifies all that Render uses of a request; empty when that is not known.
func (a *author) key(request Request, namespace string) (string, error) {
	if a.Version == "" {
		return "", nil
	}
	all := []any{
		a.Name, namespace, a.facts(request.Cluster), a.facts(request.Hosting), request.AddOn.Namespace,
		without(request.AddOn.Labels, prefixOwn), without(request.AddOn.Annotations, prefixOwn, prefixApply),
	}
	for _, config := range request.Choice.Configs {
		all = append(all, config.Group, config.Resource, config.Namespace, config.Name, config.SpecHash)
	}
	if request.Choice.several() {
		all = append(all, request.Choice.Precedence)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("encoding the facts of a rendering: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16]), nil
}
