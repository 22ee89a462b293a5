package deploy

import (
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// bindingStep and workStep are planned writes.
type (
	bindingStep = reconcile.Step[*rbacv1.RoleBinding]
	workStep    = works.Step
)

// plan is the decision of a pass.
type plan struct {
	// registrations is the desired status.registrations; valid unless the answer of the agent is unknown.
	registrations []addonv1beta1.RegistrationConfig
	// pending is why permissions are not set yet; empty when they can be.
	pending  string
	bindings []bindingStep

	works []workStep
	// worksErr is why the works stay unchanged, but for those that an earlier add-on left.
	worksErr error
	// kept are our works that stay unchanged.
	kept []*workv1.ManifestWork
	// finalizers are those that the add-on must have before its works are written; nil when it has exactly them.
	finalizers *[]string
	// hosts is the record of hosting clusters that the add-on must have before its works are written; nil when it has it.
	hosts *string
	// renames reports whether the add-on gets foundHost as its hosting cluster, or loses one that the hub had found.
	renames   bool
	foundHost string
	// waits tells, for each side, which works cannot be written before others apply objects.
	waits map[works.Side][]string
	// verified identifies the records of works of another version that this one renders the same; zero for none.
	verified works.Sum
}

// worksPlan is the plan of all deploy works.
type worksPlan struct {
	steps []workStep
	// kept are our works that stay unchanged.
	kept []*workv1.ManifestWork
	// waits tells, for each side, which works cannot be written before others apply objects.
	waits map[works.Side][]string
	// guards are the finalizers that the add-on needs.
	guards []string
	// verified identifies the records of works that this version renders the same, where the records do not say it by
	// themselves (needsVerifying); zero for none.
	verified works.Sum
}

// add adds the plan of the works of a side.
func (p *worksPlan) add(side works.Side, of works.Planned) {
	p.steps, p.kept = append(p.steps, of.Steps...), append(p.kept, of.Kept...)
	if len(of.Waits) > 0 {
		if p.waits == nil {
			p.waits = map[works.Side][]string{}
		}
		p.waits[side] = of.Waits
	}
}

// deletionPlan is the decision about such an add-on.
type deletionPlan struct {
	// works are written first.
	works []workStep
	// drop are the finalizers that are removed after the works; because has a sentence of explanation for each reason.
	drop    []string
	because []string
	// skipped reports that a hook was required and cannot run.
	skipped bool
	// attempts is the new record of attempts of hooks, which is written before the works; empty when it does not change.
	// failures describes what failed.
	attempts string
	failures []string
	// conditions explain what the deletion waits for.
	conditions []metav1.Condition
	// waits reports that hooks are not done, which depends on what the author of the add-on answers.
	waits bool
	wake  time.Time
}

// hookPlan is the decision about the hooks of one side.
type hookPlan struct {
	// done reports that nothing more has to run; skipped that hooks should have and cannot.
	done, skipped bool
	// reason is the reason of the condition while the hooks are not done.
	reason string
	// message describes the state.
	message string
	steps   []workStep
	// failed is the new record of failed attempts; nil when it does not change.
	failed *attempts
	wake   time.Time
}

// results are the errors of the steps of a plan, one for each step.
type results struct {
	bindings []error
	works    []error
	// current are our deploy works of both sides after the pass, ordered by name.
	current []*workv1.ManifestWork
	// addOn is the add-on with its new finalizers; nil when they did not change.
	addOn *addonv1beta1.ManagedClusterAddOn
}

// nameTakenError says that an object of another client has the name of one of ours.
type nameTakenError struct{ message string }

// Error implements error.
func (e *nameTakenError) Error() string { return e.message }

// creates reports whether a step creates an object.
func creates[T client.Object](steps []reconcile.Step[T]) bool {
	return slices.ContainsFunc(steps, func(s reconcile.Step[T]) bool { return s.Verb == reconcile.Create })
}

// attempts records the attempts of the hooks of one side.
type attempts struct {
	// Count is how many attempts failed.
	Count int `json:"count,omitempty"`
	// Work is the UID of the work of the last of them.
	Work string `json:"work,omitempty"`
	// Failed is when it was seen to fail.
	Failed time.Time `json:"failed,omitzero"`
	// Done is the UID of the add-on whose hooks are done. Their works, which showed it, may be gone.
	Done string `json:"done,omitempty"`
}

// isEverywhere reports whether a binding is a ClusterRoleBinding, which gives the agent of one cluster a role in all
// namespaces. In facts and plans that is a RoleBinding without a namespace, so that it is named, repaired, and taken
// like every other binding of the add-on on this cluster.
func isEverywhere(binding *rbacv1.RoleBinding) bool { return binding != nil && binding.Namespace == "" }
