package manager

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/bench/measure"
)

const (
	// namespaceFloor has what the bare writers write.
	namespaceFloor = "bench-floor"
	// floorMost is the largest number of add-ons that the bare writers write.
	floorMost = 500
)

// sample holds what the hub manager and a cluster made of one add-on, to send the same without them.
type sample struct {
	addOn    addonv1alpha1.ManagedClusterAddOn
	works    []workv1.ManifestWork
	bindings []rbacv1.RoleBinding
}

// take remembers what there is of one add-on on one cluster.
func (r *run) take(ctx context.Context) error {
	key := client.ObjectKey{Namespace: clusterName(0), Name: addOnName(0)}
	if err := r.hub.Get(ctx, key, &r.sample.addOn); err != nil {
		return fmt.Errorf("reading an add-on: %w", err)
	}
	var works workv1.ManifestWorkList
	mine := client.MatchingLabels{names.LabelAddonName: key.Name}
	if err := r.hub.List(ctx, &works, client.InNamespace(key.Namespace), mine); err != nil {
		return fmt.Errorf("reading the works of an add-on: %w", err)
	}
	r.sample.works = works.Items
	var bindings rbacv1.RoleBindingList
	if err := r.hub.List(ctx, &bindings, client.InNamespace(key.Namespace)); err != nil {
		return fmt.Errorf("reading the bindings of an add-on: %w", err)
	}
	r.sample.bindings = slices.DeleteFunc(bindings.Items, func(b rbacv1.RoleBinding) bool {
		return !slices.ContainsFunc(b.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.UID == r.sample.addOn.UID
		})
	})
	if len(r.sample.works) == 0 || len(r.sample.bindings) == 0 {
		return fmt.Errorf("add-on %s has %d works and %d bindings, and the floor needs both",
			key, len(r.sample.works), len(r.sample.bindings))
	}
	return nil
}

// floor sends, from ten writers and without a hub manager, the requests that the API asks of any hub manager and of the
// agents for an installation: the add-on and its status, its bindings, its works, and their finalizers and status.
func (r *run) floor(ctx context.Context) error {
	r.fleet.HubManager().Stop(stopGrace)
	if err := r.collectorQuiet(ctx); err != nil {
		return err
	}
	// Its webhook would be asked in vain.
	if err := r.hub.DeleteAllOf(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{}); err != nil {
		return fmt.Errorf("deleting the webhooks: %w", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceFloor}}
	if err := r.hub.Create(ctx, namespace); err != nil {
		return fmt.Errorf("creating namespace %s: %w", namespaceFloor, err)
	}
	r.spokes.Stop() // What this process uses from now on is what the writers use.
	n := min(floorMost, r.Size.all())
	before, err := measure.Processor(os.Getpid())
	if err != nil {
		return err
	}
	began := time.Now()
	if err := spread(ctx, n, r.floorOne); err != nil {
		return fmt.Errorf("writing without a hub manager: %w", err)
	}
	bare := time.Since(began)
	after, err := measure.Processor(os.Getpid())
	if err != nil {
		return err
	}
	each := 2 + len(r.sample.bindings) + 3*len(r.sample.works)
	r.compareProcessor((after - before) / time.Duration(n*each))
	r.Note(r.title+"the same writes by bare writers", fmt.Sprintf("%.0f writes a second, %d writes an add-on",
		float64(n*each)/bare.Seconds(), each), "", true)
	scaled := bare * time.Duration(r.Size.all()) / time.Duration(n)
	r.Note(r.title+"install beside that", fmt.Sprintf("%s, %.2fx of %s bare", r.installing.took.Round(time.Millisecond),
		float64(r.installing.took)/float64(scaled), scaled.Round(time.Millisecond)), "", true)
	return nil
}

// compareProcessor relates the processor time of one request of the hub manager, with all that it watches and decides
// for it, to that of one bare write.
func (r *run) compareProcessor(bare time.Duration) {
	if bare == 0 || r.installing.requests.Count == 0 {
		return
	}
	one := r.installing.processor / time.Duration(r.installing.requests.Count)
	r.Note(r.title+"the same writes by bare writers, processor", fmt.Sprintf("%s a write", bare.Round(time.Microsecond)),
		"", true)
	r.Note(r.title+"install beside that, processor", fmt.Sprintf("%s a request, %.1fx", one.Round(time.Microsecond),
		float64(one)/float64(bare)), "", true)
}

// floorOne writes what belongs to one add-on on one cluster.
func (r *run) floorOne(ctx context.Context, n int) error {
	name := fmt.Sprintf("floor-%04d", n)
	addOn := &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: like(&r.sample.addOn.ObjectMeta, name), Spec: *r.sample.addOn.Spec.DeepCopy(),
	}
	if err := r.hub.Create(ctx, addOn); err != nil {
		return err
	}
	for i := range r.sample.bindings {
		from := &r.sample.bindings[i]
		binding := &rbacv1.RoleBinding{
			ObjectMeta: like(&from.ObjectMeta, fmt.Sprintf("%s-%d", name, i)), RoleRef: from.RoleRef, Subjects: from.Subjects,
		}
		if err := r.hub.Create(ctx, binding); err != nil {
			return err
		}
	}
	for i := range r.sample.works {
		if err := r.floorWork(ctx, &r.sample.works[i], fmt.Sprintf("%s-%d", name, i)); err != nil {
			return err
		}
	}
	addOn.Status = *r.sample.addOn.Status.DeepCopy()
	return r.hub.Status().Update(ctx, addOn)
}

// floorWork writes a work like the hub manager, and its finalizer and its status like an agent.
func (r *run) floorWork(ctx context.Context, from *workv1.ManifestWork, name string) error {
	work := &workv1.ManifestWork{ObjectMeta: like(&from.ObjectMeta, name), Spec: *from.Spec.DeepCopy()}
	if err := r.hub.Create(ctx, work); err != nil {
		return err
	}
	before := work.DeepCopy()
	work.Finalizers = append(work.Finalizers, names.FinalizerManifestWork)
	if err := r.hub.Patch(ctx, work, client.MergeFrom(before)); err != nil {
		return err
	}
	bare := work.DeepCopy()
	work.Status = *from.Status.DeepCopy()
	return r.hub.Status().Patch(ctx, work, client.MergeFrom(bare))
}

// like returns metadata with the labels and annotations of another object, which nobody owns.
func like(from *metav1.ObjectMeta, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespaceFloor, Name: name, Labels: from.Labels, Annotations: from.Annotations,
	}
}
