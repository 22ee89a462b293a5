package work

import (
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
)

// kindGone tells whether a request was refused because the API server does not serve the kind any more, which it did
// when the manifest was read. An object, or its namespace, that does not exist is another matter.
func kindGone(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
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

// awaits tells whether the kind of a tracked object is not served: then there is nothing to watch, and the watch that
// begins when the kind is served again begins at once.
func awaits(manifests []manifest, entry workv1.AppliedManifestResourceMeta) bool {
	return slices.ContainsFunc(manifests, func(m manifest) bool { return m.unserved() && m.couldBe(entry) })
}
