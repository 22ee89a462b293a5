package deploy

import (
	"fmt"
	"strings"
)

// verbEverywhere is the right of the account of add-ons on a ClusterRole by which an administrator consents that it is
// bound in all namespaces. The other ways to consent say nothing about that: they are for the namespaces of clusters.
const verbEverywhere = "bind-in-all-namespaces"

// notConsentedError says that no administrator consented that a role is bound in all namespaces.
type notConsentedError struct {
	role, account string
	// all reports that the account has the right on all roles.
	all bool
}

// Error implements error. The commands are those of an administrator of the hub.
func (e *notConsentedError) Error() string {
	account := strings.Replace(e.account, "/", ":", 1)
	if e.all {
		return fmt.Sprintf("the account of add-ons has the verb %[1]s on all roles, which is no consent to any of them. An "+
			"administrator finds what grants that by: kubectl auth can-i --list --as=system:serviceaccount:%[2]s, and "+
			"narrows it to names of roles, such as %[3]s", verbEverywhere, account, e.role)
	}
	return fmt.Sprintf("no administrator of the hub consented to that role in all namespaces, those of Kubernetes, of "+
		"the hub manager and of all other clusters among them. An administrator who wants that for every add-on whose "+
		"template asks for it consents by: kubectl create clusterrole bind-%[1]s-everywhere --verb=bind,%[2]s "+
		"--resource=clusterroles.rbac.authorization.k8s.io --resource-name=%[1]s && kubectl create clusterrolebinding "+
		"bind-%[1]s-everywhere --clusterrole=bind-%[1]s-everywhere --serviceaccount=%[3]s", e.role, verbEverywhere, account)
}
