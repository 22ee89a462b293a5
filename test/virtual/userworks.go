package virtual

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"
)

// thing is an object on a cluster.
type thing struct{ kind, namespace, name string }

// groupVersion is the one in which a thing is written.
func (t thing) groupVersion() schema.GroupVersion {
	switch t.kind {
	case "Deployment":
		return schema.GroupVersion{Group: "apps", Version: "v1"}
	case "Role", "RoleBinding":
		return schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	case "Gadget":
		return schema.GroupVersion{Group: "example.com", Version: "v1"}
	}
	return schema.GroupVersion{Version: "v1"}
}

// object is a thing without content.
func (t thing) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(t.groupVersion().WithKind(t.kind))
	u.SetNamespace(t.namespace)
	u.SetName(t.name)
	return u
}

// valueKey is the annotation that each thing has.
const valueKey = "example.com/value"

// userWork is a ManifestWork that people write.
type userWork struct {
	name string
	// space is the namespace of its things, and own whether that is one of them.
	space string
	own   bool
	// value is in each thing.
	value string
	// things are those in the namespace.
	things []thing
	// executor and feedback say whether the work has one.
	executor, feedback bool
}

// all are all things of a work.
func (u *userWork) all() []thing {
	if !u.own {
		return u.things
	}
	return append([]thing{{"Namespace", "", u.space}}, u.things...)
}

// newUserWork is a work with a thing of each kind.
func newUserWork(name string) *userWork {
	u := &userWork{name: name, space: name, own: true, value: "v0"}
	for _, kind := range []string{"RoleBinding", "Role", "Deployment", "Secret", "ConfigMap"} {
		u.things = append(u.things, thing{kind, name, "web"})
	}
	return u
}

// manifest is the manifest of a thing.
func (u *userWork) manifest(t thing) map[string]any {
	o := t.object()
	o.SetAnnotations(map[string]string{valueKey: u.value})
	switch t.kind {
	case "ConfigMap":
		o.Object["data"] = map[string]any{"value": u.value}
	case "Secret":
		o.Object["stringData"] = map[string]any{"pin": u.value}
	case "Role":
		o.Object["rules"] = []any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"pods"}, "resourceNames": []any{u.value}, "verbs": []any{"get"},
		}}
	case "RoleBinding":
		o.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": t.name}
		o.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": "default", "namespace": t.namespace}}
	case "Deployment":
		o.Object["spec"] = map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": t.name}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": t.name}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": u.value}}},
			},
		}
	}
	return o.Object
}

// spec is the content of the ManifestWork, after an edit of its manifests; nil edits nothing.
func (u *userWork) spec(edit func(t thing, manifest map[string]any)) workv1.ManifestWorkSpec {
	var spec workv1.ManifestWorkSpec
	for _, t := range u.all() {
		content := u.manifest(t)
		if edit != nil {
			edit(t, content)
		}
		raw, _ := json.Marshal(content)
		manifest := workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}
		spec.Workload.Manifests = append(spec.Workload.Manifests, manifest)
		if u.feedback && t.kind == "Deployment" {
			spec.ManifestConfigs = append(spec.ManifestConfigs, workv1.ManifestConfigOption{
				ResourceIdentifier: workv1.ResourceIdentifier{
					Group: "apps", Resource: "deployments", Namespace: t.namespace, Name: t.name,
				},
				FeedbackRules: []workv1.FeedbackRule{{
					Type: workv1.JSONPathsType, JsonPaths: []workv1.JsonPath{{Name: "replicas", Path: ".status.replicas"}},
				}},
			})
		}
	}
	if u.executor {
		spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			Type: workv1.ExecutorSubjectTypeServiceAccount,
			ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{
				Namespace: "default", Name: "default",
			},
		}}
	}
	return spec
}

// differs returns how a thing is not as its work says; empty when it is.
func (u *userWork) differs(t thing, o *unstructured.Unstructured) string {
	if o == nil {
		return "it does not exist"
	}
	have := map[string]string{valueKey: o.GetAnnotations()[valueKey]}
	switch t.kind {
	case "ConfigMap":
		have["data"], _, _ = unstructured.NestedString(o.Object, "data", "value")
	case "Deployment":
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if len(containers) == 1 {
			content, _ := containers[0].(map[string]any)
			have["image"], _ = content["image"].(string)
		}
	}
	for field, value := range have {
		if value != u.value {
			return fmt.Sprintf("its %s is %q and not %q", field, value, u.value)
		}
	}
	return ""
}

// model holds what must be on a cluster by the works that people wrote.
type model struct {
	mu    sync.Mutex
	works map[string]*userWork
	// handed is until when people may have deleted a thing, or all in a namespace.
	handed map[thing]time.Time
	// dead are things that nobody may make.
	dead map[thing]bool
	// strict are works of which no manifest may fail.
	strict map[string]bool
}

func newModel() *model {
	return &model{
		works: map[string]*userWork{}, handed: map[thing]time.Time{}, dead: map[thing]bool{}, strict: map[string]bool{},
	}
}

// set makes a work one that there is, unset one that there is not.
func (m *model) set(u *userWork) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.works[u.name] = u
	for _, t := range u.all() {
		delete(m.dead, t)
	}
}

func (m *model) unset(u *userWork) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.works, u.name)
}

// hand notes that people delete a thing, or a namespace with all in it, now.
func (m *model) hand(t thing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handed[t] = time.Now().Add(settled)
}

// bury notes that nobody may make the things of a work any more.
func (m *model) bury(u *userWork) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range u.all() {
		m.dead[t] = true
	}
}

// isStrict and isDead report what was noted.
func (m *model) isStrict(work string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.strict[work]
}

func (m *model) isDead(t thing) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead[t]
}

// keeps reports whether nobody but the agent can have deleted a thing, and it must not.
func (m *model) keeps(t thing) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Before(m.handed[t]) || now.Before(m.handed[thing{"Namespace", "", t.namespace}]) {
		return false
	}
	for _, u := range m.works {
		if slices.Contains(u.all(), t) {
			return true
		}
	}
	return false
}

// all are the works in order.
func (m *model) all() []*userWork {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []*userWork
	for _, u := range m.works {
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b *userWork) int { return strings.Compare(a.name, b.name) })
	return all
}
