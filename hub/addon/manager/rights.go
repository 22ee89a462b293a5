package manager

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/hub/addon"
)

// rolePrefix begins the names of the ClusterRole of a program, and of its guard.
const rolePrefix = "open-cluster-management:addon-manager:"

// Rights returns the objects that give a program exactly the rights that it needs on the hub with these add-ons and
// this configuration: its ServiceAccount, a ClusterRole, Roles in single namespaces, their bindings, and an admission
// policy that restricts what RBAC cannot. Each add-on must be an addon.Declarer, as those of addon.New are.
//
// No right to read ConfigMaps and Secrets as configurations is among them, because the kinds of configuration do not
// name objects: grant list and watch on those that a ClusterManagementAddOn names.
func Rights(c Config, agents ...addon.Agent) ([]client.Object, error) {
	own, err := newAddOns(agents)
	if err != nil {
		return nil, err
	}
	c.complete(agents)
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("the configuration cannot work:\n%w", err)
	}
	r := rights{Config: c, addOns: own.names, configured: len(own.kinds()) > 0}
	for _, name := range own.names {
		declarer, ok := own.Fixed[name].(addon.Declarer)
		if !ok {
			return nil, fmt.Errorf("add-on %s (%T) does not declare what its program needs: implement addon.Declarer",
				name, own.Fixed[name])
		}
		r.add(declarer.Needs())
	}
	return r.objects(), nil
}

// printRights writes the rights as one stream of YAML documents.
func printRights(out io.Writer, c Config, agents []addon.Agent) error {
	objects, err := Rights(c, agents...)
	if err != nil {
		return err
	}
	for _, object := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("converting %s: %w", object.GetName(), err)
		}
		delete(content, "status") // It is empty, and a difference for ever in a tool that compares.
		data, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", object.GetName(), err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", data); err != nil {
			return fmt.Errorf("printing the rights: %w", err)
		}
	}
	return nil
}

// rights are the needs of all add-ons of a program.
type rights struct {
	Config

	addOns  []string
	configs []schema.GroupResource
	// configured reports whether any add-on has configurations.
	configured bool
	// approves and signs are signers.
	approves, signs []string
	// clusterRoles are bound anywhere; roles, by their namespace, only there. secrets are CAs by their namespace.
	clusterRoles   []string
	roles, secrets map[string][]string
}

// add adds the needs of one add-on.
func (r *rights) add(n addon.Needs) {
	for _, resource := range n.ConfigGVRs {
		if resource.Group != corev1.GroupName {
			r.configs = appendNew(r.configs, resource.GroupResource())
		}
	}
	if n.KubeClient {
		r.approves = appendNew(r.approves, certificatesv1.KubeAPIServerClientSignerName)
	}
	r.approves = appendNew(r.approves, n.Approves...)
	r.signs = appendNew(r.signs, n.Signs...)
	if r.roles == nil {
		r.roles, r.secrets = map[string][]string{}, map[string][]string{}
	}
	for _, role := range n.Roles {
		if cmp.Or(role.Kind, addon.KindClusterRole) == addon.KindClusterRole {
			r.clusterRoles = appendNew(r.clusterRoles, role.Name)
			continue
		}
		// A Role without a namespace is in the namespace of every cluster.
		r.roles[role.Namespace] = appendNew(r.roles[role.Namespace], role.Name)
	}
	for _, ca := range n.CAs {
		namespace := cmp.Or(ca.Namespace, r.Namespace)
		r.secrets[namespace] = appendNew(r.secrets[namespace], ca.Name)
	}
}

// appendNew appends the items that are not in a list yet.
func appendNew[T comparable](list []T, items ...T) []T {
	for _, item := range items {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// objects returns the objects, in the order in which they can be created.
func (r *rights) objects() []client.Object {
	all := []client.Object{&corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name},
	}}
	all = append(all, r.guard()...)
	name := rolePrefix + r.Name
	all = append(all, &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: addon.KindClusterRole},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: r.clusterRules(),
	}, &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: addon.KindClusterRole, Name: name},
		Subjects:   r.subjects(),
	})
	all = append(all, r.inNamespace(r.Namespace, "lease", []rbacv1.PolicyRule{
		// The right to create cannot be restricted to a name.
		rule([]string{coordinationv1.GroupName}, []string{"leases"}, []string{"create"}),
		rule([]string{coordinationv1.GroupName}, []string{"leases"}, []string{"get", "update"}, r.Name),
	})...)
	if r.configured {
		all = append(all, r.inNamespace(r.HubNamespace, "configurations", []rbacv1.PolicyRule{
			rule([]string{"apps"}, []string{"controllerrevisions"}, []string{"list", "watch"}),
		})...)
	}
	for _, namespace := range sortedKeys(r.secrets) {
		all = append(all, r.inNamespace(namespace, "signing", []rbacv1.PolicyRule{
			rule([]string{""}, []string{"secrets"}, []string{"get"}, r.secrets[namespace]...),
		})...)
	}
	for _, namespace := range sortedKeys(r.roles) {
		if namespace != "" {
			all = append(all, r.inNamespace(namespace, "binding", []rbacv1.PolicyRule{
				rule([]string{rbacv1.GroupName}, []string{"roles"}, []string{"bind"}, r.roles[namespace]...),
			})...)
		}
	}
	return all
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// clusterRules returns the rights on objects in all namespaces. Objects of these add-ons are named where RBAC can.
func (r *rights) clusterRules() []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{
		rule([]string{addonv1beta1.GroupName}, []string{"managedclusteraddons"}, []string{"list", "watch"}),
		// One is read before its hooks are created, its works are deleted, or its certificate is approved.
		rule([]string{addonv1beta1.GroupName}, []string{"managedclusteraddons"}, []string{"get"}, r.addOns...),
		// Finalizers, and the status.
		rule([]string{addonv1beta1.GroupName}, []string{"managedclusteraddons", "managedclusteraddons/status"},
			[]string{"patch"}, r.addOns...),
		// Works and bindings block the deletion of the add-on that owns them.
		rule([]string{addonv1beta1.GroupName}, []string{"managedclusteraddons/finalizers"}, []string{"update"}, r.addOns...),
		rule([]string{addonv1beta1.GroupName}, []string{"clustermanagementaddons"}, []string{"list", "watch"}),
		// The hashes of configurations.
		rule([]string{addonv1beta1.GroupName}, []string{"clustermanagementaddons/status"}, []string{"patch"}, r.addOns...),
		rule([]string{clusterv1.GroupName}, []string{"managedclusters"}, []string{"list", "watch"}),
		rule([]string{""}, []string{"namespaces"}, []string{"list", "watch"}),
		rule([]string{workv1.GroupName}, []string{"manifestworks"},
			[]string{"get", "list", "watch", "create", "patch", "delete"}),
		rule([]string{rbacv1.GroupName}, []string{"rolebindings"}, r.bindingVerbs()),
		rule([]string{certificatesv1.GroupName}, []string{"certificatesigningrequests"},
			[]string{"list", "watch"}),
		rule([]string{"", "events.k8s.io"}, []string{"events"}, []string{"create", "patch"}),
	}
	for _, config := range r.configs {
		rules = append(rules, rule([]string{config.Group}, []string{config.Resource}, []string{"list", "watch"}))
	}
	if len(r.clusterRoles) > 0 {
		rules = append(rules, rule([]string{rbacv1.GroupName}, []string{"clusterroles"}, []string{"bind"},
			r.clusterRoles...))
	}
	if everywhere := r.roles[""]; len(everywhere) > 0 {
		rules = append(rules, rule([]string{rbacv1.GroupName}, []string{"roles"}, []string{"bind"}, everywhere...))
	}
	return append(rules, r.signerRules()...)
}

// bindingVerbs are the verbs on RoleBindings. Without roles, those that an earlier version of the program bound are
// deleted.
func (r *rights) bindingVerbs() []string {
	if len(r.clusterRoles)+len(r.roles) == 0 {
		return []string{"list", "watch", "delete"}
	}
	return []string{"get", "list", "watch", "create", "patch", "delete"}
}

// signerRules returns the rights to approve and to sign.
func (r *rights) signerRules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	if len(r.approves)+len(r.signs) > 0 { // it is read in full before it is written
		rules = append(rules, rule([]string{certificatesv1.GroupName}, []string{"certificatesigningrequests"},
			[]string{"get"}))
	}
	if len(r.approves) > 0 {
		rules = append(rules,
			rule([]string{certificatesv1.GroupName}, []string{"certificatesigningrequests/approval"}, []string{"update"}),
			// A request that nobody approved for a day is deleted, as Kubernetes does without a condition.
			rule([]string{certificatesv1.GroupName}, []string{"certificatesigningrequests"}, []string{"delete"}),
			rule([]string{certificatesv1.GroupName}, []string{"signers"}, []string{"approve"}, r.approves...))
	}
	if len(r.signs) > 0 {
		rules = append(rules,
			rule([]string{certificatesv1.GroupName}, []string{"certificatesigningrequests/status"}, []string{"update"}),
			rule([]string{certificatesv1.GroupName}, []string{"signers"}, []string{"sign"}, r.signs...))
	}
	return rules
}

// inNamespace returns a Role of the program in a namespace, and its binding.
func (r *rights) inNamespace(namespace, purpose string, rules []rbacv1.PolicyRule) []client.Object {
	name := rolePrefix + r.Name + ":" + purpose
	return []client.Object{&rbacv1.Role{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: addon.KindRole},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules,
	}, &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: addon.KindRole, Name: name},
		Subjects:   r.subjects(),
	}}
}

func (r *rights) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Namespace, Name: r.Name}}
}

func rule(groups, resources, verbs []string, objects ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, ResourceNames: objects, Verbs: verbs}
}
