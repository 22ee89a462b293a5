package placement

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// largeFleet is 3,000 clusters as they are with 20 add-ons.
func largeFleet() []*clusterv1.ManagedCluster {
	all := make([]*clusterv1.ManagedCluster, 3000)
	for i := range all {
		c := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}, ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("cluster-%04d", i), UID: types.UID(fmt.Sprint(i)), ResourceVersion: fmt.Sprint(i), Labels: map[string]string{
				clusterv1beta2.ClusterSetLabel: "default", "env": []string{"prod", "dev", "test"}[i%3], "ring": []string{"canary", ""}[min(i%50, 1)],
			},
		}}
		for j := range 20 {
			c.Labels[fmt.Sprintf("feature.open-cluster-management.io/addon-%02d", j)] = "available"
			c.Status.ClusterClaims = append(c.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: fmt.Sprintf("claim-%02d", j), Value: "x"})
		}
		c.Status.Version.Kubernetes = "v1.31.0"
		all[i] = c
	}
	return all
}

func largeSpecs() map[string]clusterv1beta1.PlacementSpec {
	grouped := where(labelled(by("env", "In", "prod", "dev")))
	grouped.DecisionStrategy = newWorld(percent(5), "canary").spec.DecisionStrategy
	return map[string]clusterv1beta1.PlacementSpec{
		"all":    {},
		"labels": where(labelled(by("env", "In", "prod"))),
		"claims": where(claimed(by("claim-07", "In", "x"))),
		"groups": grouped,
		"cel":    where(byCEL(`managedCluster.status.version.kubernetes.startsWith("v1.31")`).RequiredClusterSelector),
	}
}

// BenchmarkDecide is a pass over a fleet of 3,000 clusters in which nothing is to do.
func BenchmarkDecide(b *testing.B) {
	for name, spec := range largeSpecs() {
		b.Run(name, func(b *testing.B) {
			f := facts{now: noon(), placement: placement(), clusters: largeFleet(), bindings: bound(setDefault)}
			f.placement.Spec = spec
			f.rules = parse(spec, new(memory).compile)
			in := interestOf(f)
			first := decide(f, in)
			require.NoError(b, first.misconfigured)
			f.decisionSlices = written(first.layout.Slices)
			b.ReportAllocs()
			for b.Loop() {
				decide(f, in)
			}
		})
	}
}

// BenchmarkChange is the change of a label that no Placement looks at, on a hub with 100 Placements.
func BenchmarkChange(b *testing.B) {
	m := &memory{}
	for i := range 100 {
		observer(m, fmt.Sprintf("p%d", i), where(labelled(by("env", "In", "prod"))), setGlobal)
	}
	older := largeFleet()[0]
	newer := older.DeepCopy()
	newer.Labels["feature.open-cluster-management.io/addon-00"] = "unreachable"
	b.ReportAllocs()
	for b.Loop() {
		require.Empty(b, m.concernedBy(older, newer))
	}
}
