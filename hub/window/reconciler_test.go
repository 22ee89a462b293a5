package window

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/policies"
)

// A label of one cluster causes such a pass for each window that names it.
func BenchmarkAPassOfAWindow(b *testing.B) {
	f := facts{now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), clusters: make([]clusterv1.ManagedCluster, 3000)}
	f.window = &policies.MaintenanceWindow{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Spec: policies.MaintenanceWindowSpec{
		Kind: "Allow", Schedule: "0 1 * * *", Duration: metav1.Duration{Duration: time.Hour},
		ClusterSelector: metav1.LabelSelector{MatchLabels: map[string]string{"name": "c5"}},
	}}
	for i := range f.clusters {
		c := &f.clusters[i]
		c.Labels = map[string]string{"name": fmt.Sprint("c", i), "kind": "shop"}
		for n := range 10 {
			c.Status.ClusterClaims = append(c.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: fmt.Sprint("claim", n), Value: "x"})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		conclude(f)
	}
}
