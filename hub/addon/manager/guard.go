package manager

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr/approve"
	"github.com/spokelet/spokelet/internal/names"
)

// identityPrefix begins the names of all users and groups of agents.
const identityPrefix = "system:open-cluster-management:"

// confirmed is the condition by which the hub manager confirms the identity in a request.
const confirmed = string(approve.ConditionIdentityOwn)

// guard returns the admission policy of a program, and its binding. RBAC gives the program works, RoleBindings and
// certificate requests of everybody, because their names are not known before; the policy leaves it those of its own
// add-ons.
func (r *rights) guard() []client.Object {
	name := strings.ReplaceAll(strings.TrimSuffix(rolePrefix, ":"), ":", ".") + "." + r.Name
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy",
		},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
					guarded(workv1.GroupName, "v1", "manifestworks"),
					guarded(rbacv1.GroupName, "v1", "rolebindings"),
					guarded(certificatesv1.GroupName, "v1", "certificatesigningrequests", "certificatesigningrequests/approval",
						"certificatesigningrequests/status"),
				},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "the-program",
				Expression: fmt.Sprintf("request.userInfo.username == 'system:serviceaccount:%s:%s'", r.Namespace,
					r.Name),
			}},
			Variables:   r.guardVariables(),
			Validations: r.guardValidations(),
		},
	}
	return []client.Object{policy, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		TypeMeta: metav1.TypeMeta{
			APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicyBinding",
		},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}}
}

func guarded(group, version string, resources ...string) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{
			admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
		},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources,
		},
	}}
}

// guardVariables returns the variables of the policy.
func (r *rights) guardVariables() []admissionregistrationv1.Variable {
	label := func(object, label string) string {
		return fmt.Sprintf("%[1]s != null && has(%[1]s.metadata.labels) && '%[2]s' in %[1]s.metadata.labels ? "+
			"%[1]s.metadata.labels['%[2]s'] : ''", object, label)
	}
	return []admissionregistrationv1.Variable{
		{Name: "addOns", Expression: list(r.addOns)},
		{Name: "addOn", Expression: label("object", names.LabelAddonName)},
		{Name: "was", Expression: label("oldObject", names.LabelAddonName)},
		// One of ours that lost its labels is known by its name.
		{Name: "adopted", Expression: "object != null && (" +
			"(request.resource.resource == 'manifestworks' && request.name.startsWith('addon-' + variables.addOn + '-')) || " +
			"(request.resource.resource == 'rolebindings' && " +
			"request.name.startsWith('open-cluster-management:' + variables.addOn + ':')))"},
		{Name: "cluster", Expression: label("object", names.LabelClusterName)},
		{Name: "sub", Expression: "has(request.subResource) ? request.subResource : ''"},
		{Name: "isBinding", Expression: "request.resource.resource == 'rolebindings' && object != null"},
		{Name: "isRequest", Expression: "request.resource.resource == 'certificatesigningrequests'"},
		{Name: "ofCluster", Expression: "variables.isBinding && namespaceObject != null && " +
			"has(namespaceObject.metadata.labels) && '" + names.LabelClusterName + "' in namespaceObject.metadata.labels"},
		{Name: "account", Expression: "variables.ofCluster ? request.namespace : variables.cluster"},
		{Name: "conditions", Expression: "variables.isRequest && object != null ? " +
			"object.?status.?conditions.orValue([]) : []"},
		{Name: "hadConditions", Expression: "variables.isRequest && oldObject != null ? " +
			"oldObject.?status.?conditions.orValue([]) : []"},
		{Name: "group", Expression: "'" + identityPrefix + "cluster:' + variables.account + ':addon:' + variables.addOn"},
		{Name: "requester", Expression: "variables.isRequest && object != null && has(object.spec.username) ? " +
			"object.spec.username : ''"},
	}
}

// guardValidations returns the rules of the policy.
func (r *rights) guardValidations() []admissionregistrationv1.Validation {
	own := strings.Join(r.addOns, ", ")
	deny := func(expression, message string) admissionregistrationv1.Validation {
		return admissionregistrationv1.Validation{
			Expression: expression, Message: message, Reason: ptr.To(metav1.StatusReasonForbidden),
		}
	}
	rules := []admissionregistrationv1.Validation{
		deny("(object == null || variables.addOn in variables.addOns) && "+
			"(oldObject == null || variables.was in variables.addOns || (variables.was == '' && variables.adopted))",
			"this program writes only what has the label "+names.LabelAddonName+" of one of its add-ons: "+own),
		deny("!variables.isBinding || variables.ofCluster || !(request.namespace in "+
			"['kube-system', 'kube-public', 'kube-node-lease', '"+r.HubNamespace+"'])",
			"no role is bound for an add-on in a namespace of Kubernetes or of the hub manager"),
		deny("!variables.isBinding || object.roleRef.kind + '/' + object.roleRef.name in "+list(r.roleRefs()),
			"this program binds only the roles that its add-ons name"),
		deny("!variables.isBinding || !has(object.subjects) || (variables.account != '' && "+
			"object.subjects.all(s, (s.kind == 'Group' && s.name == variables.group) || "+
			"(s.kind == 'User' && s.name.startsWith(variables.group + ':agent:')) || "+
			"(s.kind == 'ServiceAccount' && s.name == variables.addOn + '-agent' && "+
			"has(s.namespace) && s.namespace == variables.account)))",
			"a RoleBinding of an add-on has the agents of that add-on on one cluster as its subjects, and no other"),
		deny("!variables.isRequest || object == null || variables.sub != ''",
			"this program creates no certificate requests, and changes only their approval and certificate"),
		deny("!variables.isRequest || object == null || object.spec.signerName in "+list(r.approves),
			"this program approves and signs only for the signers of its add-ons"),
		deny("!variables.isRequest || object == null || variables.cluster != '' && variables.requester.startsWith("+
			"'"+identityPrefix+"' + variables.cluster + ':') && variables.requester.split(':').size() == 4",
			"this program approves and signs requests of add-ons only if the agent of the cluster asks"),
		deny("!variables.isRequest || object == null || object.spec.usages.all(u, "+
			"u in ['digital signature', 'key encipherment', 'client auth'])",
			"this program approves and signs certificates of clients only"),
		deny("!variables.isRequest || object == null || oldObject == null || "+
			"variables.conditions.all(c, c.type != '"+confirmed+"' || variables.hadConditions.exists(h, h == c))",
			"only the hub manager writes condition "+confirmed),
	}
	if r.TrustAsOCM {
		return rules
	}
	return append(rules, deny("!variables.isRequest || object == null || "+
		"object.spec.signerName != '"+certificatesv1.KubeAPIServerClientSignerName+"' || "+
		"!variables.conditions.exists(c, c.type == 'Approved') || "+
		"variables.hadConditions.exists(c, c.type == 'Approved' || (c.type == '"+confirmed+"' && c.status == 'True'))",
		"this program approves credentials for the API server of the hub only once the hub manager has written condition "+
			confirmed+" with status True on the request"))
}

// roleRefs returns the roles that the add-ons name, as kind/name.
func (r *rights) roleRefs() []string {
	var refs []string
	for _, name := range r.clusterRoles {
		refs = appendNew(refs, "ClusterRole/"+name)
	}
	for _, namespace := range sortedKeys(r.roles) {
		for _, name := range r.roles[namespace] {
			refs = appendNew(refs, "Role/"+name)
		}
	}
	return refs
}

// list returns a list of strings as an expression.
func list(items []string) string {
	if len(items) == 0 {
		return "['']"
	}
	return "['" + strings.Join(items, "', '") + "']"
}
