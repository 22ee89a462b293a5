package webhook

import (
	"fmt"
	"net/url"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/spokelet/spokelet/internal/names"
)

// groupRegister is the virtual API group of the right to accept clusters.
const groupRegister = "register.open-cluster-management.io"

// check is what must hold for a ManagedCluster to be written.
type check struct {
	// wrong is what cannot be, whoever writes it.
	wrong []string
	// rights are what the author must have.
	rights []right
	// namespace tells whether the namespace of the cluster must be able to take what the hub puts there.
	namespace bool
}

// right is something that the author of a change must be allowed to do.
type right struct {
	attributes authorizationv1.ResourceAttributes
	// what says in words what it is needed for.
	what string
}

// checkOf decides what must hold for a change; before is nil when the cluster is created.
func checkOf(before, after *clusterv1.ManagedCluster) check {
	var c check
	created := before == nil
	if created {
		before = &clusterv1.ManagedCluster{}
		if err := names.CheckCluster(after.Name); err != nil {
			c.wrong = append(c.wrong, err.Error())
		}
	}
	configs := after.Spec.ManagedClusterClientConfigs
	if created || !equality.Semantic.DeepEqual(before.Spec.ManagedClusterClientConfigs, configs) {
		for i := range configs {
			if problem := checkURL(configs[i].URL); problem != "" {
				c.wrong = append(c.wrong, fmt.Sprintf("spec.managedClusterClientConfigs[%d].url: %s", i, problem))
			}
		}
	}
	if after.Spec.HubAcceptsClient && !before.Spec.HubAcceptsClient {
		c.namespace = true
		c.rights = append(c.rights, acceptance(after.Name))
	}
	was, is := before.Labels[clusterv1beta2.ClusterSetLabel], after.Labels[clusterv1beta2.ClusterSetLabel]
	if was != is {
		for _, set := range slices.DeleteFunc([]string{was, is}, func(set string) bool { return set == "" }) {
			c.rights = append(c.rights, joining(set))
		}
	}
	return c
}

// checkURL says why clients cannot use an address; empty when they can.
func checkURL(address string) string {
	parsed, err := url.Parse(address)
	switch {
	case err != nil:
		return fmt.Sprintf("%q is no URL", address)
	case parsed.Scheme != "https" || parsed.Hostname() == "":
		return fmt.Sprintf("%q is no https address of a server", address)
	}
	return ""
}

func acceptance(cluster string) right {
	return right{authorizationv1.ResourceAttributes{
		Group: groupRegister, Resource: "managedclusters", Subresource: "accept", Verb: "update", Name: cluster,
	}, fmt.Sprintf("to accept cluster %s", cluster)}
}

func joining(set string) right {
	return right{authorizationv1.ResourceAttributes{
		Group: clusterv1.GroupName, Resource: "managedclustersets", Subresource: "join", Verb: "create", Name: set,
	}, fmt.Sprintf("to let clusters into ManagedClusterSet %s or out of it", set)}
}

// review asks whether a user has a right.
func (r right) review(user *authenticationv1.UserInfo) *authorizationv1.SubjectAccessReview {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &r.attributes, User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
	}}
}

// refusal tells a user which right is missing.
func (r right) refusal(user string) string {
	a := r.attributes
	return fmt.Sprintf("user %q is not allowed %s: that takes the verb %s on resource %s/%s in API group %s, with the "+
		"resource name %s", user, r.what, a.Verb, a.Resource, a.Subresource, a.Group, a.Name)
}
