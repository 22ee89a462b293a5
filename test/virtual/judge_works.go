package virtual

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// withoutCredential says that an add-on has no credential on its cluster; nothing when it has one.
func (f *fleet) withoutCredential(m *member, addOn string) []string {
	space := names.NamespaceAgentAddon
	if addOn != worksAddOn {
		space = addOn
	}
	field := "tls.crt"
	if m.odd {
		field = "token"
	}
	secret := f.get(m, thing{"Secret", space, credentialOf(addOn)})
	if secret == nil {
		return []string{m.Name + ": " + addOn + " has no credential"}
	}
	if text, _, _ := unstructured.NestedString(secret.Object, "data", field); text == "" {
		return []string{m.Name + ": the credential of " + addOn + " has no " + field}
	}
	return nil
}

// watch judges what happens to the things of a cluster.
func (f *fleet) watch(m *member) {
	for _, kind := range []string{"ConfigMap", "Secret", "Deployment", "Role", "RoleBinding", "Namespace"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(thing{kind: kind}.groupVersion().WithKind(kind + "List"))
		go follow(f.ctx, m.admin, list, func(event watch.EventType, o *unstructured.Unstructured) {
			t := thing{kind, o.GetNamespace(), o.GetName()}
			switch {
			case event == watch.Deleted && m.model.keeps(t):
				f.judge.violated("nothing-taken: %v of %s was deleted, which a work has", t, m.Name)
			case event == watch.Added && m.model.isDead(t):
				f.judge.violated("nothing-made: %v of %s was made, whose work is deleted", t, m.Name)
			}
		})
	}
}

// workChanged judges what a work says.
func (f *fleet) workChanged(event watch.EventType, w *workv1.ManifestWork) {
	f.keepsSecrets("the status of work "+w.Namespace+"/"+w.Name, w.Status)
	i := slices.IndexFunc(f.members, func(m *member) bool { return m.Name == w.Namespace })
	if i < 0 {
		return
	}
	m := f.members[i]
	applied := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkApplied)
	if m.model.isStrict(w.Name) && applied != nil && applied.Status == metav1.ConditionFalse {
		f.judge.violated("works-agree: work %s of %s failed, which is right: %s", w.Name, m.Name, applied.Message)
	}
	if event != watch.Deleted {
		return
	}
	for _, text := range f.leftOf(m, w) {
		f.judge.violated("nothing-left: %s", text)
	}
}

// leftOf returns what is left of a work that its agent let go.
func (f *fleet) leftOf(m *member, w *workv1.ManifestWork) []string {
	if w.DeletionTimestamp == nil || len(w.Finalizers) > 1 {
		return nil // nobody asked the agent
	}
	var left []string
	for i := range w.Spec.Workload.Manifests {
		o := &unstructured.Unstructured{}
		if o.UnmarshalJSON(w.Spec.Workload.Manifests[i].Raw) != nil {
			continue
		}
		t := thing{o.GetKind(), o.GetNamespace(), o.GetName()}
		if f.get(m, t) != nil {
			left = append(left, fmt.Sprintf("work %s of %s is gone, and %v is left", w.Name, m.Name, t))
		}
	}
	return left
}

// keepsSecrets judges a text that others than the owners of Secrets may read.
func (f *fleet) keepsSecrets(where string, content any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.secrets) == 0 {
		return
	}
	text, err := json.Marshal(content)
	if err != nil {
		return
	}
	for _, secret := range f.secrets {
		if strings.Contains(string(text), secret) {
			f.judge.violated("secret-stays: %s has a value of a Secret", where)
		}
	}
}

// conclude waits until everything agrees, and then looks for writes that nothing asks for.
func (f *fleet) conclude() {
	for _, m := range f.members {
		if err := f.untilNone(worksPatience, func() []string { return f.differencesOf(m) }); err != nil {
			f.judge.violated("comes-back: at the end: %v", err)
		}
	}
	links := []*link{f.way}
	for _, m := range f.members {
		links = append(links, m.links()...)
	}
	f.beQuiet(links)
}
