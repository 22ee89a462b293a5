package apiserver

import (
	"encoding/base64"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// began sets what clients may not set on a new object.
func (s *Server) began(r *request, o object) {
	m := o.meta()
	for _, f := range []string{
		"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink",
	} {
		o.setMeta(f, nil)
	}
	if r.table.resource.Status {
		delete(o, "status")
	}
	switch r.table.resource.Resource {
	case "namespaces":
		labelled := m.GetLabels()
		if labelled == nil {
			labelled = map[string]string{}
		}
		labelled[corev1.LabelMetadataName] = m.GetName()
		m.SetLabels(labelled)
		o["spec"], o["status"] = map[string]any{"finalizers": []any{"kubernetes"}}, map[string]any{"phase": "Active"}
	case "certificatesigningrequests":
		spec, _ := o["spec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
			o["spec"] = spec
		}
		spec["username"] = r.user
		groups := []any{}
		for _, g := range r.groups {
			groups = append(groups, g)
		}
		spec["groups"], o["status"] = groups, map[string]any{}
	case "secrets":
		o.secret()
	}
}

// secret moves what a Secret says in clear text to its data.
func (o object) secret() {
	plain, _ := o["stringData"].(map[string]any)
	data, _ := o["data"].(map[string]any)
	if data = maps.Clone(data); data == nil && len(plain) > 0 {
		data = map[string]any{}
	}
	for name, value := range plain {
		data[name] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(value)))
	}
	delete(o, "stringData")
	if data != nil {
		o["data"] = data
	}
	if kind, _ := o["type"].(string); kind == "" {
		o["type"] = "Opaque"
	}
}

// setMeta sets a field of the metadata; nil removes it.
func (o object) setMeta(name string, value any) {
	m, _ := o["metadata"].(map[string]any)
	if m = maps.Clone(m); m == nil {
		m = map[string]any{}
	}
	if value == nil {
		delete(m, name)
	} else {
		m[name] = value
	}
	o["metadata"] = m
}

// lives reports whether an object that is being deleted stays without finalizers: a namespace with content.
func (t *table) lives(o object) bool {
	return t.resource.Resource == "namespaces" && t.resource.Group == "" && o["spec"] != nil
}

// merged is the object that a client wants, with what it may not change as it was.
func (r *request) merged(before, wanted object) object {
	switch r.Subresource {
	case "status":
		after := maps.Clone(before)
		if wanted["status"] == nil {
			delete(after, "status")
		} else {
			after["status"] = wanted["status"]
		}
		return after
	case "approval":
		after := maps.Clone(before)
		status, _ := before["status"].(map[string]any)
		if status = maps.Clone(status); status == nil {
			status = map[string]any{}
		}
		from, _ := wanted["status"].(map[string]any)
		status["conditions"] = from["conditions"]
		after["status"] = status
		return after
	}
	after := maps.Clone(wanted)
	after["apiVersion"], after["kind"] = before["apiVersion"], before["kind"]
	old, _ := before["metadata"].(map[string]any)
	for _, f := range []string{
		"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "namespace",
		"resourceVersion",
	} {
		after.setMeta(f, old[f])
	}
	if r.table.resource.Status {
		delete(after, "status")
		if before["status"] != nil {
			after["status"] = before["status"]
		}
	}
	switch r.table.resource.Resource {
	case "secrets":
		after.secret()
	case "namespaces", "certificatesigningrequests":
		after["spec"] = before["spec"]
	}
	return after
}

// wrongUpdate returns what is wrong with an update.
func (r *request) wrongUpdate(after, before object) field.ErrorList {
	wrong := validation.ValidateObjectMetaAccessorUpdate(after.meta(), before.meta(), field.NewPath("metadata"))
	return append(wrong, r.resource.check(after)...)
}

// count counts a change of what is wanted.
func (r *Resource) count(after, before object) {
	if !r.Counts {
		return
	}
	apart := []string{"metadata"}
	if r.Status {
		apart = append(apart, "status")
	}
	same := after.without(apart...).sameAs(before.without(apart...))
	generation := before.meta().GetGeneration()
	if !same {
		generation++
	}
	after.setMeta("generation", generation)
}
