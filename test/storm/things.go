package storm

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
)

// domain is the group of our custom resources, and the prefix of labels and annotations.
const domain = "storm.example.com"

const (
	// annotationRevision says on every object which revision of its manifest it shows.
	annotationRevision = domain + "/revision"
	// labelSteady is on every manifest, labelFickle on those of some revisions.
	labelSteady, labelFickle = domain + "/steady", domain + "/fickle"
	// finalizer is the foreign finalizer that holds objects up.
	finalizer = domain + "/hold"
)

// kind holds what an object of the storm is.
type kind int

const (
	configMap kind = iota
	secret
	serviceAccount
	role
	roleBinding
	clusterRole
	deployment
	namespace
	// definition is the CustomResourceDefinition of widgets, itself a manifest; that of gadgets comes and goes by hand.
	definition
	widget
	gadget
)

// kinds has for each kind its API version, its name there, and where it is served.
func (k kind) names() (apiVersion, name, resource string) {
	switch k {
	case configMap:
		return "v1", "ConfigMap", "configmaps"
	case secret:
		return "v1", "Secret", "secrets"
	case serviceAccount:
		return "v1", "ServiceAccount", "serviceaccounts"
	case role:
		return "rbac.authorization.k8s.io/v1", "Role", "roles"
	case roleBinding:
		return "rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"
	case clusterRole:
		return "rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"
	case deployment:
		return "apps/v1", "Deployment", "deployments"
	case namespace:
		return "v1", "Namespace", "namespaces"
	case definition:
		return "apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"
	case widget:
		return domain + "/v1", "Widget", "widgets"
	case gadget:
		return domain + "/v1", "Gadget", "gadgets"
	}
	return "", "", ""
}

// resource is where objects of the kind are served.
func (k kind) resource() schema.GroupVersionResource {
	apiVersion, _, resource := k.names()
	gv, _ := schema.ParseGroupVersion(apiVersion)
	return gv.WithResource(resource)
}

// gvk is the kind as the API server knows it.
func (k kind) gvk() schema.GroupVersionKind {
	apiVersion, name, _ := k.names()
	return schema.FromAPIVersionAndKind(apiVersion, name)
}

// allKinds are the kinds of the storm.
func allKinds() []kind {
	return []kind{
		configMap, secret, serviceAccount, role, roleBinding, clusterRole, deployment, namespace, definition, widget, gadget,
	}
}

// presence reports whether an object that no work writes exists.
type presence int

const (
	gone presence = iota
	left
	// open means that timing decided.
	open
)

// thing is one object that may exist on the managed cluster.
type thing struct {
	id              int
	kind            kind
	namespace, name string
	// home is the Namespace that is a manifest of the storm, too, and in which the object lives; nil for most.
	home *thing

	// force and manager are how it is applied under ServerSideApply. What is not forced is never taken over by hand.
	force   bool
	manager string
	// ignores tells that ServerSideApply leaves out a field once the object exists.
	ignores bool
	// fixed tells that the strategy never changes.
	fixed bool
	// scalable tells that its manifests say nothing about the number of replicas.
	scalable bool
	// byHand tells that only hands make, change and delete it: works may read it.
	byHand bool

	// strategy is that of every work which has the object.
	strategy workv1.UpdateStrategyType
	// revision is the content of its manifest.
	revision int
	// held tells that the foreign finalizer may be on it.
	held bool
	// exists, for an object that is made by hand, reports whether it was made.
	exists bool
	// presence reports whether it exists when no work writes it.
	presence presence
	// wentWith holds what it was part of when that was the last to go; nil where it went alone.
	wentWith *thing
	// released reports that works stopped writing it after the last calm. The agent may not have observed that yet, and
	// then creates the object again when a hand deletes it.
	released bool
	// keeps holds what hands set, and the agent must leave.
	keeps map[string]keep
}

// keep is a value that was set by hand while nobody else could own it: it stays as long as the object does.
type keep struct{ uid, value string }

// deleted is the presence of an object that no work writes after it, or what it is part of, was deleted.
func (t *thing) deleted(how presence) presence {
	if t.released {
		return open
	}
	return how
}

// String names the object for a person.
func (t *thing) String() string {
	_, name, _ := t.kind.names()
	if t.namespace == "" {
		return name + " " + t.name
	}
	return name + " " + t.namespace + "/" + t.name
}

// writes reports whether works write the object.
func (t *thing) writes() bool { return t.strategy != workv1.UpdateStrategyTypeReadOnly }

// bits are random bits that belong to a revision of the object.
func (t *thing) bits(revision int) uint32 {
	x := uint32(t.id)*2654435761 + uint32(revision)*40503 + 12345
	x ^= x >> 15
	x *= 2246822519
	return x ^ x>>13
}

// fields are the values of a ConfigMap, Secret or custom resource in a revision: two that are always there and four
// that come and go.
func (t *thing) fields(revision int) map[string]string {
	value := "r" + strconv.Itoa(revision)
	fields := map[string]string{"s0": value, "s1": value}
	for i := range 4 {
		if t.bits(revision)>>i&1 == 1 {
			fields["v"+strconv.Itoa(i)] = value
		}
	}
	return fields
}

// labels are those of the manifest in a revision.
func (t *thing) labels(revision int) map[string]string {
	labels := map[string]string{labelSteady: t.name}
	if t.bits(revision)>>4&1 == 1 {
		labels[labelFickle] = "r" + strconv.Itoa(revision)
	}
	return labels
}

// manifest is the manifest of a revision.
func (t *thing) manifest(revision int) map[string]any {
	apiVersion, name, _ := t.kind.names()
	metadata := map[string]any{
		"name": t.name, "labels": values(t.labels(revision)),
		"annotations": map[string]any{annotationRevision: strconv.Itoa(revision)},
	}
	if t.namespace != "" {
		metadata["namespace"] = t.namespace
	}
	object := map[string]any{"apiVersion": apiVersion, "kind": name, "metadata": metadata}
	maps.Copy(object, t.content(revision))
	return object
}

// content holds what a manifest says beside who the object is.
func (t *thing) content(revision int) map[string]any {
	value := "r" + strconv.Itoa(revision)
	const rbac = "rbac.authorization.k8s.io"
	switch t.kind {
	case configMap:
		return map[string]any{"data": values(t.fields(revision))}
	case secret:
		data := map[string]any{}
		for key, text := range t.fields(revision) {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
		return map[string]any{"data": data, "type": t.secretType(revision)}
	case role, clusterRole:
		return map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"get"}, "resourceNames": []any{value},
		}}}
	case roleBinding:
		return map[string]any{
			"roleRef":  map[string]any{"apiGroup": rbac, "kind": "ClusterRole", "name": "view"},
			"subjects": []any{map[string]any{"apiGroup": rbac, "kind": "User", "name": value}},
		}
	case deployment:
		return map[string]any{"spec": t.deploymentSpec(value)}
	case definition:
		return definitionOf(widget)
	case widget, gadget:
		return map[string]any{"spec": values(t.fields(revision))}
	case serviceAccount, namespace:
	}
	return nil
}

// secretType is the type of the Secret: that of one which is always updated changes, which asks for a new object.
func (t *thing) secretType(revision int) string {
	if t.fixed && revision%2 == 1 {
		return domain + "/odd"
	}
	return "Opaque"
}

// deploymentSpec is the spec of a Deployment whose image has a tag.
func (t *thing) deploymentSpec(tag string) map[string]any {
	labels := map[string]any{"app": t.name}
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{"containers": []any{map[string]any{
				"name": "main", "image": "registry.example.com/storm:" + tag,
			}}},
		},
	}
	if !t.scalable {
		spec["replicas"] = int64(0)
	}
	return spec
}

// defaultSize holds what the API server fills in where a custom resource says nothing.
const defaultSize = 3

// definitionOf is the content of the CustomResourceDefinition of a kind; the API server fills in spec.size.
func definitionOf(k kind) map[string]any {
	_, name, resource := k.names()
	return map[string]any{"spec": map[string]any{
		"group": domain, "scope": "Namespaced",
		"names": map[string]any{"kind": name, "plural": resource},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
				"spec": map[string]any{
					"type": "object", "additionalProperties": map[string]any{"type": "string"},
				},
				"size": map[string]any{"type": "integer", "default": int64(defaultSize)},
			}}},
		}},
	}}
}

// values is a map of texts as JSON has it.
func values(texts map[string]string) map[string]any {
	object := make(map[string]any, len(texts))
	for key, text := range texts {
		object[key] = text
	}
	return object
}

// newThings returns all objects that the storm may make.
func newThings() []*thing {
	var all []*thing
	add := func(k kind, ns, name string, n int) {
		for i := range n {
			t := &thing{
				id: len(all), kind: k, namespace: ns, name: fmt.Sprintf("%s-%d", name, i),
				strategy: workv1.UpdateStrategyTypeUpdate, revision: 1, keeps: map[string]keep{},
			}
			t.force, t.ignores, t.scalable = t.id%3 != 0, k == configMap && t.id%4 == 1, k == deployment && i%2 == 0
			t.manager = []string{"work-agent", "work-agent-storm"}[t.id/3%2]
			all = append(all, t)
		}
	}
	for _, ns := range storage() {
		add(configMap, ns, "config", 10)
		add(secret, ns, "secret", 4)
		add(serviceAccount, ns, "account", 3)
		add(role, ns, "role", 3)
		add(roleBinding, ns, "binding", 2)
		add(deployment, ns, "deployment", 3)
		add(widget, ns, "widget", 3)
		add(gadget, ns, "gadget", 3)
	}
	add(clusterRole, "", "storm-cluster-role", 4)
	add(namespace, "", "storm-home", 2)
	homes := slices.Clone(all[len(all)-2:])
	for _, home := range homes {
		before := len(all)
		add(configMap, home.name, "config", 2)
		add(serviceAccount, home.name, "account", 1)
		add(widget, home.name, "widget", 1)
		for _, t := range all[before:] {
			t.home = home
		}
	}
	add(definition, "", "widgets."+domain, 1)
	all[len(all)-1].name = "widgets." + domain
	add(configMap, storage()[0], "foreign", 4)
	for _, t := range all[len(all)-4:] {
		t.byHand, t.fixed, t.strategy = true, true, workv1.UpdateStrategyTypeReadOnly
	}
	for _, t := range all {
		t.fixed = t.fixed || (t.kind == secret && t.name == "secret-0")
	}
	return all
}

// storage are the namespaces that are always there.
func storage() []string { return []string{"storm-a", "storm-b"} }
