package deploy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/hub/addon"
	"github.com/spokelet/spokelet/hub/deploy/health"
	"github.com/spokelet/spokelet/hub/deploy/works"
	"github.com/spokelet/spokelet/internal/apierror"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/pause"
	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// reasonPermissionPending means that the agent gets its roles later; the API has no constant for it.
	reasonPermissionPending = "PermissionConfigPending"
	// maxMessage is the length to which messages of conditions are truncated, in bytes; the API allows 32768.
	maxMessage = 8192
	// firstRetry and lastRetry bound the delay before a role that could not be bound, or a content that could not be
	// stored, is tried again; no watch shows when
	// it can be.
	firstRetry, lastRetry = time.Second, 30 * time.Second
)

// conclude returns the add-on with its new status.
func conclude(f facts, p plan, done results) *addonv1beta1.ManagedClusterAddOn {
	after := f.addOn.DeepCopy()
	status := &after.Status
	status.SupportedConfigs = slices.SortedFunc(slices.Values(f.about.SupportedConfigs),
		func(a, b addonv1beta1.ConfigGroupResource) int {
			return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
		})
	if f.registrationsErr == nil { // The add-on may be a newer one, with which its agent chose another driver.
		status.Registrations = mergeRegistrations(f.addOn.Namespace, f.addOn, f.registrations)
	}
	if f.setupErr == nil {
		status.Namespace = cmp.Or(f.setup.Namespace, f.addOn.Annotations[names.AnnotationInstallNamespace],
			names.NamespaceAgentAddon)
		if mode, known := healthMode(f.setup.Health); known {
			status.HealthCheck.Mode = mode
		}
	}
	set := func(condition metav1.Condition) {
		condition.Message = message.Cut(condition.Message, maxMessage)
		reconcile.SetCondition(&status.Conditions, condition, f.now)
	}
	concludeHost(f, &status.Conditions, set)
	if condition, known := registrationApplied(f, p, done); known {
		set(condition)
	}
	done.current = worksAfter(f, p, done)
	concludeApplied := func(condition metav1.Condition, state conditionState) {
		switch {
		case state == conditionKnown:
			set(condition)
		case state == conditionPending && meta.IsStatusConditionFalse(status.Conditions, condition.Type):
			// A failure of works that are gone says nothing about the present ones.
			meta.RemoveStatusCondition(&status.Conditions, condition.Type)
		}
	}
	concludeApplied(manifestApplied(f, works.Managed, p, done))
	switch hostOf(f) {
	case hostReady, hostRefused, hostUnwilling, hostDiffers:
		concludeApplied(manifestApplied(f, works.Hosting, p, done))
	case hostNone, hostMissing, hostDeleting, hostPending:
		meta.RemoveStatusCondition(&status.Conditions, addonv1beta1.ManagedClusterAddOnHostingManifestApplied)
	}
	if condition, known := healthOf(f, healthSide(f, done.current)); known {
		set(condition)
	}
	f.record(after, done.current, hasNothing(f, p))
	return after
}

// hasNothing reports whether the agent has no objects with the present configuration, and no work is left.
func hasNothing(f facts, p plan) bool {
	return p.worksErr == nil && f.configuration.Err == nil && len(p.works) == 0 && len(ownWorks(f)) == 0
}

// record writes the configuration of the add-on and the progress of its works. nothing reports that there are none
// because the agent has no objects.
func (f facts) record(after *addonv1beta1.ManagedClusterAddOn, current []*workv1.ManifestWork, nothing bool) {
	if f.configuration.Record != nil {
		f.configuration.Record(after, addon.Progress{
			Now: f.now, Works: current, Orders: ordersOf(current), Nothing: nothing,
			RollingOut: health.RollingOut(healthWorks(current)),
		})
	}
}

// ordersOf returns the orders of configurations from which works are known to be rendered.
func ordersOf(current []*workv1.ManifestWork) []string {
	var orders []string
	for _, work := range current {
		if order := works.OrderOf(work); order != "" {
			orders = append(orders, order)
		}
	}
	return orders
}

// worksAfter returns our deploy works of both sides after the pass, ordered by name.
func worksAfter(f facts, p plan, done results) []*workv1.ManifestWork {
	current, own := slices.Clone(p.kept), ownWorks(f)
	for i, s := range p.works {
		switch {
		case done.works[i] == nil && s.Verb != reconcile.Delete:
			current = append(current, s.After)
		case done.works[i] != nil && s.Verb != reconcile.Create && slices.Contains(own, s.Before):
			current = append(current, s.Before)
		}
	}
	slices.SortFunc(current, func(a, b *workv1.ManifestWork) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
	})
	return current
}

// registrationApplied returns the condition RegistrationApplied; false leaves it unchanged.
func registrationApplied(f facts, p plan, done results) (metav1.Condition, bool) {
	condition := metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnRegistrationApplied, Status: metav1.ConditionFalse,
		Reason: addonv1beta1.RegistrationAppliedSetPermissionFailed,
	}
	for _, err := range []error{f.accepted(), f.registrationsErr, f.setupErr, f.withheld, f.refused} {
		if addon.IsNotReady(err) {
			return condition, false
		}
		if err != nil {
			condition.Message = message.Sentence(err.Error())
			return condition, true
		}
	}
	var failed []string
	for i, err := range done.bindings {
		switch {
		case err == nil:
		case reconcile.IsLostRace(err):
			return condition, false
		default:
			failed = append(failed, explainBinding(p.bindings[i], f.account, err))
		}
	}
	switch {
	case p.pending != "":
		condition.Reason, condition.Message = reasonPermissionPending, p.pending
	case len(failed) > 0:
		condition.Message = strings.Join(failed, " ")
	case len(p.registrations) == 0:
		condition.Status, condition.Reason = metav1.ConditionTrue, addonv1beta1.RegistrationAppliedNilRegistration
		condition.Message = "The add-on does not register with the hub."
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, addonv1beta1.RegistrationAppliedSetPermissionApplied
		condition.Message = "The registration of the add-on and its permissions on the hub are set."
	}
	return condition, true
}

// explainBinding explains why a role could not be bound, with a remedy.
func explainBinding(s bindingStep, account string, err error) string {
	if s.Verb == reconcile.Delete {
		return message.Sentence(err.Error())
	}
	binding := s.After
	kind, role := binding.RoleRef.Kind, binding.RoleRef.Name
	if isEverywhere(binding) {
		return fmt.Sprintf("%s %s cannot be bound for the agent in all namespaces: %s", kind, role,
			message.Sentence(err.Error()))
	}
	what := fmt.Sprintf("%s %s cannot be bound for the agent in namespace %s", kind, role, binding.Namespace)
	scope, label := "", ""
	switch {
	case kind == "Role":
		scope = " -n " + binding.Namespace
	case names.IsPlainRole(role):
		label = fmt.Sprintf(" Or label it: kubectl label clusterrole %s %s=true.", role, names.LabelHubPermission)
	}
	switch {
	case apierror.ByPolicy(err, ""):
		return fmt.Sprintf("%s: a policy of the hub refuses it. The API server says: %v.", what, err)
	case apierrors.IsForbidden(err) && !names.IsPlainRole(role): // The author of a template chooses the name.
		return fmt.Sprintf("%s: ServiceAccount %s may not grant rights that it does not have. Create a %s whose name has "+
			"only letters, digits and :._@+-, and let the template ask for that. The API server says: %v.", what, account,
			kind, err)
	case apierrors.IsForbidden(err):
		resource := "clusterrolebinding"
		if kind == "Role" {
			resource = "rolebinding"
		}
		return fmt.Sprintf("%s: ServiceAccount %s may not grant rights that it does not have. Grant it the %s, for "+
			"example by: kubectl create %s addon-manager-%s%s --%s=%s --serviceaccount=%s.%s The API server says: %v.",
			what, account, kind, resource, role, scope, strings.ToLower(kind), role,
			strings.Replace(account, "/", ":", 1), label, err)
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%s: create the %s or the namespace that is missing. The API server says: %v.", what, kind, err)
	}
	return fmt.Sprintf("%s: %s", what, message.Sentence(err.Error()))
}

// conditionState says what happens to a condition.
type conditionState int

const (
	conditionKnown conditionState = iota
	// conditionPending removes a condition that is False and leaves any other.
	conditionPending
	conditionUnchanged
)

// manifestApplied returns the condition ManifestApplied, or HostingManifestApplied, from all works of a side; the worst
// of them counts.
func manifestApplied(f facts, side works.Side, p plan, done results) (metav1.Condition, conditionState) {
	condition := metav1.Condition{
		Type: addonv1beta1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionFalse,
		Reason: addonv1beta1.AddonManifestAppliedReasonWorkApplyFailed,
	}
	if side == works.Hosting {
		condition.Type = addonv1beta1.ManagedClusterAddOnHostingManifestApplied
	}
	if addon.IsNotReady(p.worksErr) {
		return condition, conditionUnchanged
	}
	switch err := errors.Join(failuresOf(f, side, p, done)...); {
	case reconcile.IsLostRace(err):
		return condition, conditionUnchanged
	case err != nil:
		condition.Message = message.Sentence(strings.ReplaceAll(err.Error(), "\n", "; "))
		return condition, conditionKnown
	}
	own := ofSide(f, side, done.current)
	refused, pending := refusals(own)
	switch {
	case len(refused) > 0:
		condition.Reason = addonv1beta1.AddonManifestAppliedReasonManifestsApplyFailed
		condition.Message = strings.Join(slices.Concat(p.waits[side], refused), " ")
		return condition, conditionKnown
	case pending:
		return condition, conditionPending
	}
	condition.Status, condition.Reason = metav1.ConditionTrue, addonv1beta1.AddonManifestAppliedReasonManifestsApplied
	condition.Message = appliedMessage(f, side, len(own))
	return condition, conditionKnown
}

// ofSide returns the works of a side.
func ofSide(f facts, side works.Side, all []*workv1.ManifestWork) []*workv1.ManifestWork {
	return slices.DeleteFunc(slices.Clone(all), func(w *workv1.ManifestWork) bool { return sideOf(f.addOn, w) != side })
}

// healthSide returns the works that the health of an add-on depends on: those of the side with its agent.
func healthSide(f facts, all []*workv1.ManifestWork) []*workv1.ManifestWork {
	if hostOf(f) == hostNone {
		return ofSide(f, works.Managed, all)
	}
	return ofSide(f, works.Hosting, all)
}

// failuresOf returns the errors about the works of a side.
func failuresOf(f facts, side works.Side, p plan, done results) []error {
	if p.worksErr != nil {
		return []error{p.worksErr}
	}
	var failed []error
	for i, err := range done.works {
		if err != nil && sideOf(f.addOn, p.works[i].Object()) == side {
			failed = append(failed, err)
		}
	}
	return failed
}

// appliedMessage returns the message of a condition about a number of works that are all applied.
func appliedMessage(f facts, side works.Side, count int) string {
	where := ""
	switch {
	case side == works.Hosting:
		where = " on hosting cluster " + hostName(f)
	case hostOf(f) != hostNone:
		where = " on the managed cluster"
	}
	text := fmt.Sprintf("All manifests of the add-on%s are applied.", where)
	if count == 0 {
		text = fmt.Sprintf("The add-on has no manifests to apply%s.", where)
	}
	if f.pendingHealth != "" && side == works.Managed {
		text += fmt.Sprintf(" The AddOnTemplate asks for another way to tell the health of the add-on than was "+
			"rolled out (annotation %s). It counts from the next rollout of a changed template on.",
			names.AnnotationHealthProbe)
	}
	for _, remark := range f.remarks {
		text += " " + message.Sentence(remark)
	}
	return text
}

// refusals lists what clusters could not apply, and reports whether a work awaits its first status for the present
// generation.
func refusals(all []*workv1.ManifestWork) (refused []string, pending bool) {
	for _, work := range all {
		condition := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
		switch {
		case condition == nil || condition.ObservedGeneration < work.Generation:
			pending = true
		case condition.Status != metav1.ConditionTrue:
			refused = append(refused, fmt.Sprintf("ManifestWork %s: %s", work.Name,
				message.Sentence(cmp.Or(condition.Message, condition.Reason))))
			refused = append(refused, refusedManifests(work)...)
		}
	}
	return refused, pending
}

// refusedManifests lists the manifests of a work that could not be applied, with the reasons.
func refusedManifests(work *workv1.ManifestWork) []string {
	var refused []string
	for _, m := range work.Status.ResourceStatus.Manifests {
		condition := meta.FindStatusCondition(m.Conditions, workv1.ManifestApplied)
		if condition == nil || condition.Status == metav1.ConditionTrue {
			continue
		}
		id := works.Identity{
			Group: m.ResourceMeta.Group, Kind: m.ResourceMeta.Kind,
			Namespace: m.ResourceMeta.Namespace, Name: m.ResourceMeta.Name,
		}
		refused = append(refused, fmt.Sprintf("%s: %s", id, message.Sentence(condition.Message)))
	}
	return refused
}

// outcomeOf returns the outcome of the pass.
func outcomeOf(f facts, p plan, done results, published error) reconcile.Outcome {
	outcome := reconcile.FromError(published).And(f.repeated())
	if f.pendingHost != "" { // Sets, and the cluster that is claimed, start no pass.
		outcome = outcome.And(reconcile.DoneUntil(f.now.Add(pause.Spread(lookForHost, 1, f.addOn.Namespace, f.addOn.Name))))
	}
	outcome = outcome.And(answered(f.registrationsErr, f.setupErr, f.withheld, f.refused, p.worksErr))
	for _, err := range slices.Concat(done.bindings, done.works) {
		var occupied *nameTakenError
		var unconsented *notConsentedError
		switch {
		case err == nil:
		case apierrors.IsForbidden(err), apierrors.IsNotFound(err), errors.As(err, &occupied), errors.As(err, &unconsented):
			wake := f.now.Add(pause.Spread(retryDelay(f), 1, f.addOn.Namespace, f.addOn.Name))
			outcome = outcome.And(reconcile.Waiting(wake))
		default:
			outcome = outcome.And(reconcile.FromError(err))
		}
	}
	return outcome
}

// answered returns the outcome of what an author of the add-on answered, or its configuration: what only they can mend
// is not asked again, and all that may go away is.
func answered(answers ...error) reconcile.Outcome {
	outcome := reconcile.Done()
	for _, err := range answers {
		var wait *works.WaitError
		var denied *notAcceptedError
		var unhosted *noHostError
		switch {
		case err == nil, addon.IsNotReady(err), errors.As(err, &wait), errors.As(err, &denied), errors.As(err, &unhosted):
		case addon.IsInvalid(err):
			outcome = outcome.And(reconcile.Stalled(err))
		default:
			outcome = outcome.And(reconcile.FromError(err))
		}
	}
	return outcome
}

// repeated returns when a configuration is asked for again: when time alone may change it, or when its contents could
// not be stored. What a policy or a quota refuses is asked less often than what failed.
func (f facts) repeated() reconcile.Outcome {
	outcome, err := reconcile.DoneUntil(f.configuration.Recheck), f.configuration.Unstored
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		again := f.now.Add(pause.Spread(lastRetry, 1, f.addOn.Namespace, f.addOn.Name))
		return outcome.And(reconcile.DoneUntil(again))
	}
	return outcome.And(reconcile.FromError(err))
}

// retryDelay returns the delay before a role that could not be bound is tried again: short at first, because a user who
// grants it is probably doing so, then ever longer. It is computed from the condition alone.
func retryDelay(f facts) time.Duration {
	condition := meta.FindStatusCondition(f.addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnRegistrationApplied)
	if condition == nil || condition.Status != metav1.ConditionFalse {
		return firstRetry
	}
	return pause.Growing{First: firstRetry, Last: lastRetry}.Since(f.now.Sub(condition.LastTransitionTime.Time))
}
