package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/spokelet/spokelet/internal/names"
)

// act starts, stops or retimes the heartbeat, which reports its errors itself, and marks namespaces. It returns the
// error of each marking by the name of the namespace.
func (r *Reconciler) act(ctx context.Context, p plan) map[string]error {
	r.Heartbeat.SetPeriod(p.heartbeat)
	if p.awaitHeartbeat {
		r.Heartbeat.NotifyNext()
	}
	results := make(map[string]error, len(p.markings))
	for _, m := range p.markings {
		results[m.name] = r.mark(ctx, m)
	}
	return results
}

// claimHosting gives the claim on the cluster of the agent its value, or deletes it. It updates instead of patching,
// because that is what OCM's operator grants.
func (r *Reconciler) claimHosting(ctx context.Context, value string) error {
	const name = names.ClaimHostingCluster
	have, err := r.hosting.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && value == "":
		return nil
	case apierrors.IsNotFound(err):
		claim := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"value": value}}}
		claim.SetAPIVersion(clusterv1alpha1.GroupVersion.String())
		claim.SetKind("ClusterClaim")
		claim.SetName(name)
		_, err = r.hosting.Create(ctx, claim, metav1.CreateOptions{FieldManager: reportingController})
	case err == nil && value == "":
		err = r.hosting.Delete(ctx, name, metav1.DeleteOptions{})
	case err == nil:
		if err = unstructured.SetNestedField(have.Object, value, "spec", "value"); err == nil {
			_, err = r.hosting.Update(ctx, have, metav1.UpdateOptions{FieldManager: reportingController})
		}
	}
	if err != nil {
		return fmt.Errorf("writing claim %s of the cluster on which the agent runs: %w", name, err)
	}
	return nil
}

// mark sets the label of the hub on a namespace. A managed namespace is created if it is missing; one that is no longer
// managed may be missing.
func (r *Reconciler) mark(ctx context.Context, m marking) error {
	var err error
	if m.managed {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
				"name": m.name, "labels": map[string]any{r.label: managedTrue},
			},
		}}
		_, err = r.spaces.Apply(ctx, m.name, object, metav1.ApplyOptions{FieldManager: r.manager(), Force: true})
	} else {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, r.label, managedFalse)
		_, err = r.spaces.Patch(ctx, m.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: r.manager()})
		if apierrors.IsNotFound(err) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("marking namespace %s as managed=%t: %w", m.name, m.managed, err)
	}
	return nil
}

// manager is the field manager of the label. Each hub has its own: server-side apply removes fields that the same
// manager applied before and no longer applies, so two agents of two hubs would remove the label of each other.
func (r *Reconciler) manager() string { return reportingController + "-" + r.label[len(r.label)-8:] }

// failures joins the errors of the markings.
func failures(results map[string]error) error {
	failed := make([]error, 0, len(results))
	for _, err := range results {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
