package deploy

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// verb is what is done to an object.
type verb int

const (
	create verb = iota
	patch
	remove
	// replace removes an object and creates it anew, because what differs cannot be changed.
	replace
)

// step is one write.
type step[T client.Object] struct {
	verb verb
	// before is the object as it is; unset for create.
	before T
	// after is the object as it is to be; unset for remove. A write fills in the answer of the server.
	after T
}

// plan is what a pass is to do.
type plan struct {
	// registrations is what status.registrations is to say; valid unless the agent's answer is unknown.
	registrations []addonv1beta1.RegistrationConfig
	// pending says why permissions are not set yet; empty when nothing holds them up.
	pending  string
	bindings []step[*rbacv1.RoleBinding]

	works []step[*workv1.ManifestWork]
	// worksErr is why the works are left as they are.
	worksErr error
	// kept are the works that are ours and stay as they are.
	kept []*workv1.ManifestWork
}

// decide plans a pass.
func decide(f facts) plan {
	p := plan{worksErr: f.renderErr}
	if f.registrationsErr == nil {
		p.registrations = mergeRegistrations(f.cluster.Name, f.addOn, f.registrations)
		p.pending = pendingPermissions(f, p.registrations)
	}
	if f.registrationsErr == nil && f.setupErr == nil && p.pending == "" {
		p.bindings = planBindings(f)
	}
	if p.worksErr == nil {
		p.works, p.kept, p.worksErr = planWorks(f)
	}
	if p.worksErr != nil {
		p.works, p.kept = nil, ownWorks(f)
	}
	return p
}

// pendingPermissions says why the agent cannot be given roles yet.
func pendingPermissions(f facts, registrations []addonv1beta1.RegistrationConfig) string {
	if len(f.setup.Permissions) == 0 {
		return ""
	}
	for _, r := range registrations {
		if r.Type == addonv1beta1.KubeClient && r.KubeClient != nil && r.KubeClient.Driver == driverToken {
			return fmt.Sprintf("The agent of cluster %s takes tokens of ServiceAccount %s/%s%s, which this hub does not "+
				"serve yet: run the agent with the csr driver.", f.cluster.Name, f.cluster.Name, f.addOn.Name, agentSuffix)
		}
	}
	return ""
}
