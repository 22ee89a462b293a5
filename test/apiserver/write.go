package apiserver

import (
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// create makes an object.
func (s *Server) create(r *request) (int, any, error) {
	o, err := r.decoded()
	if err != nil {
		return 0, nil, err
	}
	m := o.meta()
	if m.GetName() == "" && m.GetGenerateName() != "" {
		s.uids++
		m.SetName(fmt.Sprintf("%s%05x", m.GetGenerateName(), s.uids))
	}
	if r.table.resource.Namespaced {
		if m.GetNamespace() != "" && m.GetNamespace() != r.Namespace {
			return 0, nil, apierrors.NewBadRequest("the namespace of the object is not that of the request")
		}
		m.SetNamespace(r.Namespace)
		if err := s.mayCreateIn(r, m.GetName()); err != nil {
			return 0, nil, err
		}
	}
	if m.GetResourceVersion() != "" {
		return 0, nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if m.GetName() == "" {
		missing := field.Required(field.NewPath("metadata", "name"), "name or generateName is required")
		return 0, nil, r.invalid(m.GetName(), field.ErrorList{missing})
	}
	s.began(r, o)
	r.resource.complete(o)
	wrong := append(validation.ValidateObjectMetaAccessor(m, r.resource.Namespaced, validation.NameIsDNSSubdomain,
		field.NewPath("metadata")), r.resource.check(o)...)
	if wrong = withoutNames(wrong, r.resource); len(wrong) > 0 {
		return 0, nil, r.invalid(m.GetName(), wrong)
	}
	if r.table.objects[key{m.GetNamespace(), m.GetName()}] != nil {
		return 0, nil, apierrors.NewAlreadyExists(r.group(), m.GetName())
	}
	s.identify(r.table, o)
	if o, err = r.table.resource.convert(o, r.table.resource.Version); err != nil {
		return 0, nil, err
	}
	if r.dry() {
		one := store(o, s.version)
		one.setMeta("resourceVersion", nil)
		return http.StatusCreated, one, nil
	}
	one := s.add(r.table, o)
	s.settle()
	return http.StatusCreated, one, nil
}

// furnish gives a new namespace what real controllers put into each.
func (s *Server) furnish(namespace string) {
	meta := func(name string) map[string]any { return map[string]any{"namespace": namespace, "name": name} }
	s.insert(s.tables[schema.GroupResource{Resource: "configmaps"}], object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("kube-root-ca.crt"), "data": map[string]any{"ca.crt": ""},
	})
	s.insert(s.tables[schema.GroupResource{Resource: "serviceaccounts"}], object{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta("default"),
	})
}

// withoutNames drops what only some kinds demand of names: those of RBAC may have colons.
func withoutNames(wrong field.ErrorList, r *Resource) field.ErrorList {
	if r.Group != "rbac.authorization.k8s.io" {
		return wrong
	}
	return slices.DeleteFunc(wrong, func(e *field.Error) bool { return e.Field == "metadata.name" })
}

// mayCreateIn returns why nothing can be created in the namespace of a request.
func (s *Server) mayCreateIn(r *request, name string) error {
	if s.tables[schema.GroupResource{Resource: "namespaces"}].objects[key{name: r.Namespace}] == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, r.Namespace)
	}
	if !s.ending[r.Namespace] {
		return nil
	}
	err := apierrors.NewForbidden(r.group(), name, fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", r.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: "NamespaceTerminating", Message: "namespace " + r.Namespace + " is being terminated",
		Field: "metadata.namespace",
	})
	return err
}

// insert adds an object, with its identity.
func (s *Server) insert(t *table, o object) {
	s.identify(t, o)
	s.add(t, o)
}

// add adds an object that has its identity.
func (s *Server) add(t *table, o object) *stored {
	if t.resource.Resource == "namespaces" {
		defer s.furnish(o.meta().GetName())
	}
	return s.write(t, nil, o)
}

// identify gives a new object its identity.
func (s *Server) identify(t *table, o object) {
	m := o.meta()
	if t.resource.Resource == "namespaces" && o["status"] == nil {
		m.SetLabels(map[string]string{corev1.LabelMetadataName: m.GetName()})
		o["spec"], o["status"] = map[string]any{"finalizers": []any{"kubernetes"}}, map[string]any{"phase": "Active"}
	}
	s.uids++
	m.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.uids)))
	o.setMeta("creationTimestamp", instant(s.clock.Now()))
	o.setMeta("managedFields", []any{entryOf("", s.clock.Now())})
	if t.resource.Counts {
		m.SetGeneration(1)
	}
}

// write stores an object and shows it.
func (s *Server) write(t *table, before *stored, o object) *stored {
	s.version++
	after := store(o, s.version)
	s.index(t, before, after)
	t.record(&change{version: s.version, before: before, after: after}, s.keep)
	return after
}

// remove takes an object away and shows that.
func (s *Server) remove(t *table, before *stored) {
	s.version++
	s.index(t, before, nil)
	t.record(&change{version: s.version, before: before}, s.keep)
}

// invalid is the error for an object that is wrong.
func (r *request) invalid(name string, wrong field.ErrorList) error {
	return apierrors.NewInvalid(r.table.resource.gvk().GroupKind(), name, wrong)
}

// dry reports whether a request is not to be carried out.
func (r *request) dry() bool { return r.http.URL.Query().Get("dryRun") == metav1.DryRunAll }

// update changes an object by a PUT or a PATCH.
func (s *Server) update(r *request) (*stored, error) {
	before, missing := s.find(r)
	var was, wanted object
	var err error
	if missing == nil {
		if was, err = r.table.resource.as(before, r.APIVersion); err != nil {
			return nil, err
		}
	}
	switch {
	case r.Verb == "update":
		wanted, err = r.decoded()
	case missing == nil:
		wanted, err = r.patched(was)
	default:
		err = missing
	}
	if err != nil {
		return nil, err
	}
	m := wanted.meta()
	if m.GetName() != r.Name || m.GetNamespace() != r.Namespace && m.GetNamespace() != "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), r.Name))
	}
	if missing != nil {
		return nil, missing
	}
	if err := r.meant(m, before.meta()); err != nil {
		return nil, err
	}
	return s.replace(r, before, was, r.merged(was, wanted))
}

// meant returns an error when a client means another object, or another version of it, than there is.
func (r *request) meant(m, before *unstructured.Unstructured) error {
	if uid := m.GetUID(); uid != "" && uid != before.GetUID() {
		return apierrors.NewConflict(r.group(), r.Name, fmt.Errorf(
			"precondition failed: the UID is %s and not %s", before.GetUID(), uid))
	}
	if version := m.GetResourceVersion(); version != "" && version != before.GetResourceVersion() {
		return apierrors.NewConflict(r.group(), r.Name, fmt.Errorf(
			"the object has been modified; please apply your changes to the latest version and try again"))
	} else if version == "" && r.Verb == "update" && r.resource.definition != nil {
		unset := field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")
		return r.invalid(r.Name, field.ErrorList{unset})
	}
	return nil
}

// replace stores what becomes of an object; was is the one before in the version of the request.
func (s *Server) replace(r *request, before *stored, was, after object) (*stored, error) {
	r.resource.complete(after)
	if wrong := r.wrongUpdate(after, was); len(wrong) > 0 {
		return nil, r.invalid(r.Name, wrong)
	}
	r.resource.count(after, was)
	if after.meta().GetDeletionTimestamp() != nil && len(after.meta().GetFinalizers()) == 0 && !r.table.lives(after) {
		if !r.dry() {
			s.remove(r.table, before)
			s.settle()
		}
		return store(after, before.version), nil // it was never written
	}
	after, err := r.table.resource.convert(after, r.table.resource.Version)
	if err != nil {
		return nil, err
	}
	if after.sameAs(before.object) {
		return before, nil
	}
	if r.dry() {
		return store(after, before.version), nil
	}
	noteWritten(before.object, after, r.Subresource, s.clock.Now())
	one := s.write(r.table, before, after)
	s.settle()
	return one, nil
}
