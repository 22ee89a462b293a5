package rights_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox/fleet"
)

// Names of roles, as in tables.
const (
	managerRole      = "ClusterRole open-cluster-management:spokelet-hub"
	bootstrapRole    = "ClusterRole open-cluster-management:bootstrap"
	executorRole     = "ClusterRole open-cluster-management:cluster-manager-work-executor-admin:webhook"
	ownRole          = "ClusterRole open-cluster-management:managedcluster:<cluster>"
	registrationRole = "ClusterRole open-cluster-management:managedcluster:registration"
	workRole         = "ClusterRole open-cluster-management:managedcluster:work"
	executionRole    = "ClusterRole open-cluster-management:klusterlet-work:execution"
	aggregateRole    = "ClusterRole open-cluster-management:klusterlet-work:aggregate"
	spokeRole        = "ClusterRole open-cluster-management:klusterlet-registration:agent"
	addOnsRole       = "ClusterRole open-cluster-management:klusterlet-registration:addon-management"
	agentRole        = "Role open-cluster-management:management:klusterlet-registration:agent"
)

// grant is a role as it is bound somewhere.
type grant struct {
	plane, role string
	rules       []rbacv1.PolicyRule
	// namespace is where the role holds; empty means everywhere.
	namespace string
	subjects  []rbacv1.Subject
	// from and until bound the time in which the role had these rules; zero means ever.
	from, until time.Time
}

// atom is the least part of a role: one verb on one resource, with one name or with any.
type atom struct{ role, verb, group, resource, name string }

// String is the key of an atom in tables.
func (a atom) String() string {
	resource := a.resource
	if a.group != "" {
		resource = a.group + "/" + resource
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s %s", a.role, a.verb, resource, a.name))
}

// atoms are all parts of the grant.
func (g grant) atoms() []atom {
	var all []atom
	for _, rule := range g.rules {
		named := rule.ResourceNames
		if len(named) == 0 {
			named = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range named {
						all = append(all, atom{g.role, verb, group, resource, name})
					}
				}
			}
		}
	}
	return all
}

// allows reports whether the part of the grant is one that the request used.
func (g grant) allows(a atom, r request) bool {
	switch {
	case r.denied, r.plane != g.plane, r.verb != a.verb, r.group != a.group, r.resource != a.resource:
		return false
	case a.name != "" && a.name != r.name, g.namespace != "" && g.namespace != r.namespace:
		return false
	case !g.from.IsZero() && (r.at.Before(g.from) || r.at.After(g.until)):
		return false
	}
	return g.holds(r.user, r.groups)
}

// holds reports whether a user is among the subjects.
func (g grant) holds(user string, groups []string) bool {
	return slices.ContainsFunc(g.subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return user == account(s.Namespace, s.Name)
		case rbacv1.GroupKind:
			return slices.Contains(groups, s.Name)
		}
		return user == s.Name
	})
}

// bundle is the RBAC of some objects.
type bundle struct {
	roles    map[string]rbacv1.ClusterRole
	bindings []binding
}

// rules returns the rules of a role, also those that it aggregates; none for a role that is not here.
func (b *bundle) rules(role string) []rbacv1.PolicyRule {
	found := b.roles[role]
	rules := found.Rules
	if found.AggregationRule == nil {
		return rules
	}
	for _, selector := range found.AggregationRule.ClusterRoleSelectors {
		for _, other := range b.roles {
			if labels.SelectorFromSet(selector.MatchLabels).Matches(labels.Set(other.Labels)) {
				rules = slices.Concat(rules, other.Rules)
			}
		}
	}
	return rules
}

// binding is a ClusterRoleBinding or, with a namespace, a RoleBinding.
type binding struct {
	namespace string
	subjects  []rbacv1.Subject
	ref       rbacv1.RoleRef
}

// shippedGrants returns the roles that manifests/ ships, as they are bound there.
func shippedGrants() ([]grant, error) {
	var all []grant
	for plane, docs := range map[string][][]byte{fleet.HubName: manifests.Hub(), own: manifests.Klusterlet()} {
		b := bundle{roles: map[string]rbacv1.ClusterRole{}}
		for _, doc := range docs {
			if err := b.read(doc); err != nil {
				return nil, err
			}
		}
		all = append(all, b.grants(plane)...)
	}
	return all, nil
}

// read adds the RBAC of a YAML file.
func (b *bundle) read(doc []byte) error {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(doc), 4096)
	for {
		u := &unstructured.Unstructured{}
		switch err := decoder.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("decoding a manifest: %w", err)
		}
		if err := b.add(u); err != nil {
			return fmt.Errorf("reading %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
}

// add adds one object.
func (b *bundle) add(u *unstructured.Unstructured) error {
	into := runtime.DefaultUnstructuredConverter.FromUnstructured
	switch u.GetKind() {
	case "ClusterRole", "Role":
		role := rbacv1.ClusterRole{} // A Role has the same rules.
		if err := into(u.Object, &role); err != nil {
			return err
		}
		b.roles[u.GetKind()+" "+role.Name] = role
	case "ClusterRoleBinding", "RoleBinding":
		bound := rbacv1.RoleBinding{}
		if err := into(u.Object, &bound); err != nil {
			return err
		}
		b.bindings = append(b.bindings, binding{bound.Namespace, bound.Subjects, bound.RoleRef})
	}
	return nil
}

// grants returns the roles as they are bound; one that is bound to several has them all as subjects.
func (b *bundle) grants(plane string) []grant {
	found := map[string]*grant{}
	for _, bound := range b.bindings {
		name := bound.ref.Kind + " " + bound.ref.Name
		key := name + " in " + bound.namespace
		if found[key] == nil {
			found[key] = &grant{plane: plane, role: name, rules: b.rules(name), namespace: bound.namespace}
		}
		found[key].subjects = append(found[key].subjects, bound.subjects...)
	}
	var all []grant
	for _, g := range found {
		all = append(all, *g)
	}
	return all
}

// noteAccepted notes the roles that the hub manager made for the cluster while it is accepted.
func (w *world) noteAccepted(ctx context.Context) error {
	return w.note(ctx, func(g *grant) bool { return !strings.HasSuffix(g.role, "-token-role") })
}

// noteTokens notes the Role over the tokens of the add-on.
func (w *world) noteTokens(ctx context.Context) error {
	return w.note(ctx, func(g *grant) bool { return strings.HasSuffix(g.role, "-token-role") })
}

// noteDenied notes what is left to the cluster while it is denied, since from.
func (w *world) noteDenied(ctx context.Context, from time.Time) error {
	until := time.Now()
	return w.note(ctx, func(g *grant) bool {
		ofCluster := g.role == ownRole
		g.role, g.from, g.until = g.role+" (denied)", from, until
		return ofCluster
	})
}

// note notes the roles that the hub manager made for the cluster, as far as they are to be kept.
func (w *world) note(ctx context.Context, keep func(*grant) bool) error {
	b := bundle{roles: map[string]rbacv1.ClusterRole{}}
	for _, list := range []client.ObjectList{
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		if err := w.HubClient.List(ctx, list); err != nil {
			return fmt.Errorf("reading roles: %w", err)
		}
		if err := b.addRendered(list); err != nil {
			return err
		}
	}
	for _, g := range b.grants(fleet.HubName) {
		// The name of the cluster is not a part of the role.
		g.role = strings.ReplaceAll(g.role, ":"+own, ":<cluster>")
		if g.holds("", []string{csr.ClusterGroup(own)}) && keep(&g) {
			w.record.grants = append(w.record.grants, g)
		}
	}
	return nil
}

// addRendered adds what the hub manager made.
func (b *bundle) addRendered(list client.ObjectList) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
	if err != nil {
		return fmt.Errorf("encoding roles: %w", err)
	}
	u := &unstructured.UnstructuredList{}
	u.SetUnstructuredContent(content)
	kind := strings.TrimPrefix(strings.TrimSuffix(fmt.Sprintf("%T", list), "List"), "*v1.")
	return u.EachListItem(func(object runtime.Object) error {
		one, ok := object.(*unstructured.Unstructured)
		if !ok || !strings.HasPrefix(one.GetName(), "open-cluster-management:managedcluster:") &&
			!strings.HasSuffix(one.GetName(), "-token-role") {
			return nil
		}
		one.SetKind(kind)
		return b.add(one)
	})
}

// in is the metadata of an object.
func in(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
