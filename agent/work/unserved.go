package work

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
)

// kindGone reports whether a request was refused because the API server does not serve the kind any more, which it did
// when the manifest was read. An object, or its namespace, that does not exist is another matter.
func kindGone(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// servedVersion returns a version in which the API server serves the objects of a resource, after it was found not to
// serve the given one any more. It is empty when there are none left, because the kind has no definition. That a kind
// is not served although it has one is an error: its objects are there, and nobody can reach them.
func (d *draining) servedVersion(ctx context.Context, gone schema.GroupVersionResource) (string, error) {
	d.mu.Lock()
	look, known := d.versions[gone]
	if !known {
		look = sync.OnceValues(func() (string, error) { return d.lookUpVersion(ctx, gone) })
		d.versions[gone] = look
	}
	d.mu.Unlock()
	return look()
}

// lookUpVersion is servedVersion, asked of the API server.
func (d *drainer) lookUpVersion(ctx context.Context, gone schema.GroupVersionResource) (string, error) {
	meta.MaybeResetRESTMapper(d.mapper)
	served, err := d.mapper.ResourcesFor(schema.GroupVersionResource{Group: gone.Group, Resource: gone.Resource})
	if err != nil && !meta.IsNoMatchError(err) {
		return "", fmt.Errorf("looking up in which versions the API server serves %s: %w", gone.GroupResource(), err)
	}
	if version := otherVersion(served, gone); version != "" {
		return version, nil
	}
	definition, err := d.spoke.get(ctx, definitionsKey().resource, identity{Name: gone.GroupResource().String()})
	if err != nil {
		return "", err
	}
	if definition != nil {
		return "", &failure{reason: workv1.AppliedManifestFailed, message: fmt.Sprintf(
			"the API server serves no version of %s, although its CustomResourceDefinition exists; serve one",
			gone.GroupResource())}
	}
	return "", nil
}

// otherVersion returns the first version of a resource that is not the one that is gone; empty when there is none.
func otherVersion(served []schema.GroupVersionResource, gone schema.GroupVersionResource) string {
	for _, resource := range served {
		if resource.GroupResource() == gone.GroupResource() && resource.Version != gone.Version {
			return resource.Version
		}
	}
	return ""
}

// unserve notes that the kind of the manifest is not served any more. From now on its definition is waited for, as for
// one that has yet to come.
func (m *manifest) unserve() {
	m.resource, m.err = schema.GroupVersionResource{}, unservedError{kind: m.gvk.Kind}
}

// forgetUnserved makes the next pass read those manifests again whose kind turned out to be gone in this one.
func (r *Reconciler) forgetUnserved(f *facts, tasks []task) {
	if !slices.ContainsFunc(tasks, func(t task) bool { return t.vanished }) {
		return
	}
	meta.MaybeResetRESTMapper(r.mapper)
	r.memory.change(f.holder, func(k *recall) { k.manifests = slices.Clone(f.manifests) })
	r.claim(f)
}

// awaits reports whether the kind of a tracked object is not served: then there is nothing to watch, and the watch that
// begins when the kind is served again begins at once.
func awaits(manifests []manifest, entry workv1.AppliedManifestResourceMeta) bool {
	return slices.ContainsFunc(manifests, func(m manifest) bool { return m.unserved() && m.couldBe(entry) })
}
