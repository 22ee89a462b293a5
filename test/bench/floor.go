package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaceFloor has the works of the floor on the hub and their objects on the cluster.
const namespaceFloor = "bench-floor"

// template holds what the agent left of one work, to send the same without it.
type template struct {
	work    workv1.ManifestWork
	applied workv1.AppliedManifestWork
}

// take remembers what the agent made of the first work.
func (r *run) take(ctx context.Context) error {
	key := client.ObjectKey{Namespace: clusterName, Name: workName(0)}
	if err := r.hub.Get(ctx, key, &r.template.work); err != nil {
		return fmt.Errorf("reading a work: %w", err)
	}
	var list workv1.AppliedManifestWorkList
	if err := r.spoke.List(ctx, &list); err != nil {
		return fmt.Errorf("reading the AppliedManifestWorks: %w", err)
	}
	i := slices.IndexFunc(list.Items, func(a workv1.AppliedManifestWork) bool {
		return a.Spec.ManifestWorkName == key.Name
	})
	if i < 0 {
		return fmt.Errorf("no AppliedManifestWork of %s", key.Name)
	}
	r.template.applied = list.Items[i]
	return nil
}

// floor sends, from ten writers and without an agent, the requests that the API asks of any agent, and relates what the
// agent took for all of its work to that: on a machine of two cores the two API servers are most of both.
func (r *run) floor(ctx context.Context) error {
	r.cluster.Agent.Stop(settled)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceFloor}}
	for _, c := range []client.Client{r.hub, r.spoke} {
		if err := c.Create(ctx, namespace.DeepCopy()); err != nil {
			return fmt.Errorf("creating namespace %s: %w", namespaceFloor, err)
		}
	}
	floors := make([]floorWork, r.Works)
	began := time.Now()
	apply := func(ctx context.Context, i int) error { return r.floorApply(ctx, i, &floors[i]) }
	if err := spread(ctx, r.Works, apply); err != nil {
		return fmt.Errorf("applying without an agent: %w", err)
	}
	r.noteRatio("applying beside the same requests without an agent", r.applied, time.Since(began), 0)
	began = time.Now()
	remove := func(ctx context.Context, i int) error { return r.floorDelete(ctx, &floors[i]) }
	if err := spread(ctx, r.Works, remove); err != nil {
		return fmt.Errorf("deleting without an agent: %w", err)
	}
	r.noteRatio("deleting beside the same requests without an agent", r.removed, time.Since(began), 0)
	return nil
}

// floorWork holds what belongs to one work of the floor.
type floorWork struct {
	work    *workv1.ManifestWork
	applied *workv1.AppliedManifestWork
	objects []*corev1.ConfigMap
}

func (r *run) floorApply(ctx context.Context, i int, f *floorWork) error {
	meta := metav1.ObjectMeta{Namespace: namespaceFloor, Name: workName(i)}
	f.work = &workv1.ManifestWork{ObjectMeta: meta, Spec: *r.template.work.Spec.DeepCopy()}
	if err := r.hub.Create(ctx, f.work); err != nil {
		return err
	}
	if err := setFinalizers(ctx, r.hub, f.work, r.template.work.Finalizers); err != nil {
		return err
	}
	like := r.template.applied
	f.applied = &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{
		Name: "floor-" + workName(i), Annotations: like.Annotations, Finalizers: like.Finalizers,
	}, Spec: workv1.AppliedManifestWorkSpec{HubHash: "floor", AgentID: "floor", ManifestWorkName: workName(i)}}
	if err := r.spoke.Create(ctx, f.applied); err != nil {
		return err
	}
	owner := metav1.OwnerReference{
		APIVersion: workv1.GroupVersion.String(), Kind: "AppliedManifestWork", Name: f.applied.Name, UID: f.applied.UID,
	}
	for j := range r.Objects {
		object := configMap(namespaceFloor, objectName(i, j), "0")
		object.OwnerReferences = []metav1.OwnerReference{owner}
		if err := r.spoke.Create(ctx, object); err != nil {
			return err
		}
		f.objects = append(f.objects, object)
	}
	f.applied.Status = *like.Status.DeepCopy()
	if err := r.spoke.Status().Update(ctx, f.applied); err != nil {
		return err
	}
	status := f.work.DeepCopy()
	status.Status = *r.template.work.Status.DeepCopy()
	return r.hub.Status().Update(ctx, status)
}

func (r *run) floorDelete(ctx context.Context, f *floorWork) error {
	if err := r.hub.Delete(ctx, f.work); err != nil {
		return err
	}
	for _, object := range f.objects {
		uid := client.Preconditions{UID: &object.UID}
		if err := r.spoke.Delete(ctx, object, uid, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return err
		}
	}
	if err := setFinalizers(ctx, r.spoke, f.applied, nil); err != nil {
		return err
	}
	if err := r.spoke.Delete(ctx, f.applied); err != nil {
		return err
	}
	return setFinalizers(ctx, r.hub, f.work, nil)
}

// setFinalizers replaces the finalizers of an object.
func setFinalizers(ctx context.Context, c client.Client, object client.Object, finalizers []string) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object of the API", object)
	}
	object.SetFinalizers(finalizers)
	return c.Patch(ctx, object, client.MergeFrom(before))
}
