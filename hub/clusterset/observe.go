package clusterset

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/clustersets"
	"github.com/spokelet/spokelet/internal/decode"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// facts is what is known about one set.
type facts struct {
	now  time.Time
	name string
	// set is nil when it does not exist.
	set *clusterv1beta2.ManagedClusterSet
	// clusters is the number of its clusters.
	clusters int
	// invalid is what is wrong with the selector of the set; nil means nothing.
	invalid error
}

// observe reads a set and counts its clusters.
func (r *Reconciler) observe(ctx context.Context, name string) (facts, error) {
	f := facts{now: r.Clock.Now(), name: name}
	set, err := reconcile.Get(ctx, r.Client, types.NamespacedName{Name: name}, &clusterv1beta2.ManagedClusterSet{})
	if err != nil || set == nil {
		return f, err
	}
	f.set = set
	var selector labels.Selector
	if selector, f.invalid = clustersets.Selector(name, set); f.invalid == nil {
		f.clusters, err = r.count(ctx, name, selector)
	}
	return f, err
}

// count returns how many clusters a set has.
func (r *Reconciler) count(ctx context.Context, name string, selector labels.Selector) (int, error) {
	var list clusterv1.ManagedClusterList
	by := client.MatchingLabelsSelector{Selector: selector}
	if err := r.Client.List(ctx, &list, by, client.UnsafeDisableDeepCopy, decode.Metadata); err != nil {
		return 0, fmt.Errorf("listing the clusters of ManagedClusterSet %s: %w", name, err)
	}
	return len(list.Items), nil
}
