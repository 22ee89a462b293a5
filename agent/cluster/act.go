package cluster

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
