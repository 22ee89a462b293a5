package deploy

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/internal/token"
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
		p.bindings = planBindings(f, account(f, p.registrations))
	}
	if p.worksErr == nil {
		p.works, p.kept, p.worksErr = planWorks(f)
	}
	if p.worksErr != nil {
		p.works, p.kept = nil, ownWorks(f)
	}
	return p
}

// pendingPermissions says why the agent cannot be given roles yet, in the words of the contract (registration 4.4):
// with the driver token it first says that it is the ServiceAccount of the add-on.
func pendingPermissions(f facts, registrations []addonv1beta1.RegistrationConfig) string {
	if len(f.setup.Permissions) == 0 {
		return ""
	}
	for _, r := range registrations {
		if byToken(r) && r.KubeClient.Subject.User == "" {
			return "registration subject not ready"
		}
	}
	return ""
}

// account returns who the agent is on the hub besides the groups of its certificates; nil unless it takes tokens. It is
// computed here, never read from a status.
func account(f facts, registrations []addonv1beta1.RegistrationConfig) *rbacv1.Subject {
	if !slices.ContainsFunc(registrations, byToken) {
		return nil
	}
	return &rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: f.cluster.Name, Name: token.ServiceAccountName(f.addOn.Name),
	}
}

// byToken reports whether a registration is for a token of a ServiceAccount.
func byToken(r addonv1beta1.RegistrationConfig) bool {
	return r.Type == addonv1beta1.KubeClient && r.KubeClient != nil && r.KubeClient.Driver == token.Driver
}
