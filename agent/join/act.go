package join

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// annotationPrefix starts the annotations that an agent may set on its ManagedCluster.
const annotationPrefix = "agent.open-cluster-management.io"

// act executes the plan and reports the credential that is valid afterwards.
func (r *Reconciler) act(ctx context.Context, p *pass, plan plan, answer issue.Answer) error {
	var err error
	p.facts.Pair = plan.pair
	switch plan.step {
	case stepNone:
		return nil
	case stepDefer:
		return r.issuer().Keep(ctx, answer)
	case stepStore, stepRewrite:
		if err := store(ctx, r.Agent.GetClient(), r.key(), p.facts); err != nil {
			return err
		}
		if plan.step == stepStore {
			// OnCredential may end this phase, so the pending key is removed before.
			err = r.issuer().Finish(ctx, answer)
		}
	case stepReport:
	}
	if r.OnCredential != nil {
		verdict := issue.JudgePair(plan.pair, r.request(), p.facts.Now)
		r.OnCredential(credentialOf(p.facts, verdict))
	}
	return err
}

// ensureCluster makes sure, while joining, that the ManagedCluster exists, and reports whether it certainly does. A
// refusal of the hub is an error like any other: it is logged and retried.
func (r *Reconciler) ensureCluster(ctx context.Context) (bool, error) {
	if !r.Joining {
		return true, nil
	}
	var found clusterv1.ManagedCluster
	err := r.Hub.GetAPIReader().Get(ctx, types.NamespacedName{Name: r.Identity.Cluster}, &found)
	switch {
	case apierrors.IsNotFound(err):
		return r.createCluster(ctx)
	case err != nil:
		return false, fmt.Errorf("reading ManagedCluster %s with the bootstrap credential: %w", r.Identity.Cluster, err)
	}
	return true, r.completeCluster(ctx, &found)
}

func (r *Reconciler) createCluster(ctx context.Context) (bool, error) {
	wanted := newCluster(r.Identity.Cluster, r.Cluster)
	err := r.Hub.GetClient().Create(ctx, wanted)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("creating ManagedCluster %s with the bootstrap credential: %w", r.Identity.Cluster, err)
	}
	log.FromContext(ctx).Info("created the ManagedCluster", "cluster", r.Identity.Cluster)
	return true, nil
}

// completeCluster adds addresses that are missing in the ManagedCluster. The bootstrap credential is usually not
// allowed to; then the addresses stay as another client set them.
func (r *Reconciler) completeCluster(ctx context.Context, found *clusterv1.ManagedCluster) error {
	missing := missingAddresses(found.Spec.ManagedClusterClientConfigs, r.Cluster)
	if len(missing) == 0 {
		return nil
	}
	after := found.DeepCopy()
	after.Spec.ManagedClusterClientConfigs = append(after.Spec.ManagedClusterClientConfigs, missing...)
	err := r.Hub.GetClient().Update(ctx, after)
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		log.FromContext(ctx).V(1).Info("may not add addresses to the ManagedCluster", "cluster", found.Name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("adding addresses to ManagedCluster %s: %w", found.Name, err)
	}
	return nil
}

// newCluster returns the ManagedCluster as an agent creates it; acceptance and labels are left to the hub.
func newCluster(name string, o ClusterOptions) *clusterv1.ManagedCluster {
	annotations := map[string]string{}
	for key, value := range o.Annotations {
		if strings.HasPrefix(key, annotationPrefix) {
			annotations[key] = value
		}
	}
	return &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec:       clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: missingAddresses(nil, o)},
	}
}

// missingAddresses returns the addresses that are not in there.
func missingAddresses(there []clusterv1.ClientConfig, o ClusterOptions) []clusterv1.ClientConfig {
	var missing []clusterv1.ClientConfig
	for _, address := range o.ServerURLs {
		known := func(c clusterv1.ClientConfig) bool { return c.URL == address }
		if !slices.ContainsFunc(there, known) && !slices.ContainsFunc(missing, known) {
			missing = append(missing, clusterv1.ClientConfig{URL: address, CABundle: o.CABundle})
		}
	}
	return missing
}

// publish writes the condition to the ManagedCluster. The bootstrap credential is not allowed to, so nothing is written
// while joining or when the ManagedCluster does not exist.
func (r *Reconciler) publish(ctx context.Context, condition *metav1.Condition, now time.Time) error {
	if r.Joining || condition == nil {
		return nil
	}
	var before clusterv1.ManagedCluster
	switch err := r.Hub.GetClient().Get(ctx, types.NamespacedName{Name: r.Identity.Cluster}, &before); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading ManagedCluster %s: %w", r.Identity.Cluster, err)
	}
	after := before.DeepCopy()
	reconcile.SetCondition(&after.Status.Conditions, *condition, now)
	_, err := reconcile.PatchStatus(ctx, r.Hub.GetClient(), &before, after)
	return err
}
