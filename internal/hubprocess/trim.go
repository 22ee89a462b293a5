package hubprocess

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/intern"
	"github.com/spokelet/spokelet/internal/names"
	tokens "github.com/spokelet/spokelet/internal/token"
)

// rolePrefix is the prefix of the names of all our RoleBindings but those of tokens.
const rolePrefix = "open-cluster-management:"

// Trims are the transformations of a cache: they drop what no reconciler reads, and let objects share equal strings.
// What is dropped is absent from both sides of every comparison, so a patch never removes it from the API server. The
// zero value works.
type Trims struct {
	// Shared has the strings that objects share.
	Shared intern.Table
}

// AddOn trims ManagedClusterAddOns, except for their managed fields. The display name, the description and the related
// objects are for people.
func (t *Trims) AddOn(in any) (any, error) {
	switch addOn := in.(type) {
	case *addonv1alpha1.ManagedClusterAddOn:
		t.meta(addOn)
		status := &addOn.Status
		status.RelatedObjects, status.AddOnMeta = nil, addonv1alpha1.AddOnMeta{}
		status.Conditions = intern.Clip(status.Conditions)
		t.Shared.Conditions(status.Conditions)
		t.Shared.Strings(&status.Namespace, &status.KubeClientDriver)
		status.SupportedConfigs = intern.List(&t.Shared, "supported by "+addOn.Name, status.SupportedConfigs, nil)
		status.ConfigReferences = intern.List(&t.Shared, "references of "+addOn.Name, status.ConfigReferences, nil)
		status.Registrations = intern.Clip(status.Registrations)
		for i := range status.Registrations {
			r := &status.Registrations[i]
			t.Shared.Strings(&r.SignerName)
			subject := &r.Subject
			subject.Groups = intern.Clip(subject.Groups)
			t.Shared.Strings(&subject.User)
			t.strings(subject.Groups)
		}
	case *addonv1beta1.ManagedClusterAddOn:
		t.meta(addOn)
		status := &addOn.Status
		status.RelatedObjects, status.AddOnMeta = nil, addonv1beta1.AddOnMeta{}
		status.Conditions = intern.Clip(status.Conditions)
		t.Shared.Conditions(status.Conditions)
		t.Shared.Strings(&status.Namespace)
		status.SupportedConfigs = intern.List(&t.Shared, "supported by "+addOn.Name, status.SupportedConfigs, nil)
		status.ConfigReferences = intern.List(&t.Shared, "references of "+addOn.Name, status.ConfigReferences, nil)
		status.Registrations = intern.Clip(status.Registrations)
		for i := range status.Registrations {
			if kube := status.Registrations[i].KubeClient; kube != nil {
				kube.Subject.Groups = intern.Clip(kube.Subject.Groups)
				t.strings(kube.Subject.Groups)
			}
		}
	}
	return in, nil
}

// maxClaims is the number of bytes of cluster claims that are kept.
const maxClaims = 64 << 10

// Cluster trims ManagedClusters: their CA bundles, the namespaces that their agents manage, and claims beyond
// maxClaims. All else may be named by an expression of a Placement. Of a cluster that was never accepted, addresses and
// annotations are not kept either: anybody who may join creates any number of these.
func (t *Trims) Cluster(in any) (any, error) {
	cluster, isCluster := in.(*clusterv1.ManagedCluster)
	if !isCluster {
		return in, nil
	}
	cluster.ManagedFields = nil
	t.meta(cluster)
	for i := range cluster.Spec.ManagedClusterClientConfigs {
		cluster.Spec.ManagedClusterClientConfigs[i].CABundle = nil
	}
	if NeverAccepted(cluster) {
		cluster.Spec.ManagedClusterClientConfigs = nil
		maps.DeleteFunc(cluster.Annotations, func(key, _ string) bool { return !slices.Contains(marks(), key) })
	}
	status := &cluster.Status
	status.ManagedNamespaces = nil
	status.ClusterClaims = intern.Clip(firstClaims(status.ClusterClaims))
	status.Conditions = intern.Clip(status.Conditions)
	t.Shared.Conditions(status.Conditions)
	t.Shared.Strings(&status.Version.Kubernetes)
	for i := range status.ClusterClaims {
		t.Shared.Strings(&status.ClusterClaims[i].Name, &status.ClusterClaims[i].Value)
	}
	return cluster, nil
}

// firstClaims returns the claims for which there is room.
func firstClaims(claims []clusterv1.ManagedClusterClaim) []clusterv1.ManagedClusterClaim {
	return claims[:fitting(claims, maxClaims, func(c *clusterv1.ManagedClusterClaim) int {
		return len(c.Name) + len(c.Value)
	})]
}

// NeverAccepted reports whether a hub has never accepted a cluster. A cache has no annotations of it but our own.
func NeverAccepted(cluster *clusterv1.ManagedCluster) bool {
	_, accepted := cluster.Annotations[names.AnnotationAcceptedOn]
	return !accepted && !cluster.Spec.HubAcceptsClient &&
		meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ManagedClusterConditionHubAccepted) == nil
}

// marks are the annotations that decisions read of a cluster that was never accepted.
func marks() []string {
	return []string{names.AnnotationAutoAcceptedOn, names.AnnotationKeepUnaccepted}
}

// Binding trims RoleBindings. Of one that is not ours, neither by its labels nor by its name, only the name is kept:
// what others grant is none of our business, and there may be several in every namespace of a hub.
func (t *Trims) Binding(in any) (any, error) {
	b, isBinding := in.(*rbacv1.RoleBinding)
	if !isBinding {
		return in, nil
	}
	if !IsOurBinding(b) {
		*b = rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
			Namespace: t.Shared.String(b.Namespace), Name: t.Shared.String(b.Name), UID: b.UID,
			ResourceVersion: b.ResourceVersion,
		}}
		return b, nil
	}
	b.ManagedFields = nil
	t.meta(b)
	t.Shared.Strings(&b.RoleRef.APIGroup, &b.RoleRef.Kind, &b.RoleRef.Name)
	b.Subjects = intern.Clip(cut(b.Subjects, func(s *rbacv1.Subject) int {
		return perEntry + len(s.Kind) + len(s.APIGroup) + len(s.Name) + len(s.Namespace)
	}, rbacv1.Subject{Name: tooMany}))
	for i := range b.Subjects {
		s := &b.Subjects[i]
		t.Shared.Strings(&s.APIGroup, &s.Kind, &s.Name, &s.Namespace)
	}
	return b, nil
}

// Account trims ServiceAccounts to their metadata without annotations: a tenant can list any number of Secrets.
func (t *Trims) Account(in any) (any, error) {
	if account, isAccount := in.(*corev1.ServiceAccount); isAccount {
		*account = corev1.ServiceAccount{TypeMeta: account.TypeMeta, ObjectMeta: account.ObjectMeta}
		account.ManagedFields, account.Annotations = nil, nil
		t.meta(account)
	}
	return in, nil
}

// Role trims Roles. Nobody reads their annotations.
func (t *Trims) Role(in any) (any, error) {
	role, isRole := in.(*rbacv1.Role)
	if !isRole {
		return in, nil
	}
	role.ManagedFields, role.Annotations = nil, nil
	t.meta(role)
	role.Rules = intern.Clip(cut(role.Rules, func(r *rbacv1.PolicyRule) int {
		size := perEntry
		for _, all := range [][]string{r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs, r.Verbs} {
			for _, one := range all {
				size += perEntry + len(one)
			}
		}
		return size
	}, rbacv1.PolicyRule{Verbs: []string{tooMany}}))
	return role, nil
}

// IsOurBinding reports whether a reconciler may look at a RoleBinding.
func IsOurBinding(b *rbacv1.RoleBinding) bool {
	for _, label := range []string{names.LabelAddonName, names.LabelClusterName, tokens.LabelInfrastructure} {
		if _, labelled := b.Labels[label]; labelled {
			return true
		}
	}
	return strings.HasPrefix(b.Name, rolePrefix)
}

// Other trims objects of all other kinds.
func (t *Trims) Other(in any) (any, error) {
	if o, err := meta.Accessor(in); err == nil {
		DropNoise(o)
	}
	return in, nil
}

// meta trims the metadata of an object, except for its managed fields, and shares its strings.
func (t *Trims) meta(o metav1.Object) {
	dropApplied(o)
	t.Shared.Meta(o)
}

func (t *Trims) strings(all []string) {
	for i := range all {
		t.Shared.Strings(&all[i])
	}
}

// DropNoise drops the managed fields of an object, and the copy of it that kubectl apply keeps in an annotation.
func DropNoise(o metav1.Object) {
	o.SetManagedFields(nil)
	dropApplied(o)
}

// dropApplied drops the copy of an object that kubectl apply keeps in an annotation.
func dropApplied(o metav1.Object) {
	annotations := o.GetAnnotations()
	if _, applied := annotations[corev1.LastAppliedConfigAnnotation]; !applied {
		return
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	o.SetAnnotations(annotations)
}
