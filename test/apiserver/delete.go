package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// delete deletes an object, or begins to.
func (s *Server) delete(r *request) (int, any, error) {
	before, err := s.find(r)
	if err != nil {
		return 0, nil, err
	}
	var options metav1.DeleteOptions
	if err := r.options(&options); err != nil {
		return 0, nil, err
	}
	if err := r.allows(options.Preconditions, before); err != nil {
		return 0, nil, err
	}
	after, err := r.table.resource.passed(before, r.APIVersion)
	if err != nil {
		return 0, nil, err
	}
	if r.dry() {
		return http.StatusOK, before, nil
	}
	left := s.end(r.table, before, after, &options)
	s.settle()
	if left != nil {
		return http.StatusOK, left, nil
	}
	return http.StatusOK, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: r.Name, Group: r.table.resource.Group, Kind: r.table.resource.Resource, UID: before.meta().GetUID(),
		},
	}, nil
}

// options reads the options of a deletion, from the body or the query.
func (r *request) options(into *metav1.DeleteOptions) error {
	if len(r.body) > 0 {
		o, err := r.decode(r.body)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(encode(o), into); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	if policy := r.http.URL.Query().Get("propagationPolicy"); policy != "" {
		into.PropagationPolicy = (*metav1.DeletionPropagation)(&policy)
	}
	return nil
}

// allows returns a conflict when an object is not the one that is meant.
func (r *request) allows(p *metav1.Preconditions, o *stored) error {
	if p == nil {
		return nil
	}
	have := o.meta()
	if p.UID != nil && *p.UID != have.GetUID() {
		return apierrors.NewConflict(r.group(), r.Name, fmt.Errorf(
			"precondition failed: the UID is %s and not %s", have.GetUID(), *p.UID))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != have.GetResourceVersion() {
		return apierrors.NewConflict(r.group(), r.Name, fmt.Errorf(
			"precondition failed: the version is %s and not %s", have.GetResourceVersion(), *p.ResourceVersion))
	}
	return nil
}

// end takes an object away, or marks it as being deleted and returns it when something holds it. after is its content,
// which may be changed.
func (s *Server) end(t *table, before *stored, after object, options *metav1.DeleteOptions) *stored {
	finalizers := slices.DeleteFunc(slices.Clone(before.meta().GetFinalizers()), func(name string) bool {
		return name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents
	})
	policy := options.PropagationPolicy
	switch {
	case policy != nil && *policy == metav1.DeletePropagationOrphan:
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	case policy != nil && *policy == metav1.DeletePropagationForeground:
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	case policy == nil:
		finalizers = before.meta().GetFinalizers()
	}
	namespace := t.resource.Resource == "namespaces" && t.resource.Group == ""
	if len(finalizers) == 0 && !namespace {
		s.remove(t, before)
		return nil
	}
	m := after.meta()
	m.SetFinalizers(finalizers)
	if m.GetDeletionTimestamp() == nil {
		after.setMeta("deletionTimestamp", instant(s.clock.Now()))
		if !namespace {
			after.setMeta("deletionGracePeriodSeconds", int64(0))
		}
		if generation := before.meta().GetGeneration(); generation > 0 {
			after.setMeta("generation", generation+1)
		}
	}
	if namespace {
		s.ending[before.key.name] = true
		after["status"] = map[string]any{"phase": "Terminating"}
	}
	if after.sameAs(before.object) {
		return before
	}
	return s.write(t, before, after)
}

// deleteAll deletes what a request selects, and answers with what that was.
func (s *Server) deleteAll(r *request) (int, any, error) {
	var options metav1.DeleteOptions
	if err := r.options(&options); err != nil {
		return 0, nil, err
	}
	all, meta, err := s.page(r)
	if err != nil {
		return 0, nil, err
	}
	body, err := listBody(r, meta, all)
	if err != nil {
		return 0, nil, err
	}
	for _, one := range all {
		after, err := r.table.resource.passed(one, r.APIVersion)
		if err != nil {
			return 0, nil, err
		}
		if r.table.objects[one.key] == one {
			s.end(r.table, one, after, &options)
			s.settle()
		}
	}
	return http.StatusOK, body, nil
}
