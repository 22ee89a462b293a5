package configure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/hub/fleet"
	"github.com/spokelet/spokelet/internal/addonapi"
	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/gate"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/internal/reconcile"
)

// Reasons of the condition Configured.
const (
	reasonConfigured    = "ConfigurationsConfigured"
	reasonNotConfigured = "ConfigurationsNotConfigured"
)

// The messages of the condition Configured begin with the words of OCM, because tools compare them; what we know beside
// follows.
const (
	messageConfigured    = "Configurations configured"
	messageNotConfigured = causes.NotConfigured
)

// Reasons of the condition addon.spokelet.io/Soaked.
const (
	reasonSoaked = "SoakedBefore"
	reasonBroke  = "BrokeWhileItSoaked"
	reasonOwn    = "OwnConfiguration"
)

// maxListed is how many configurations or placements a message lists.
const maxListed = 5

// facts are the inputs of the decision about one add-on.
type facts struct {
	addOn *addonv1beta1.ManagedClusterAddOn
	// cma is nil when it does not exist.
	cma *addonv1beta1.ClusterManagementAddOn
	// placement is the index of the placement that owns the add-on; -1 for none.
	placement int
	// doubts are the placements that may own the add-on in its place.
	doubts []fleet.Doubt
	states addonconfig.States
	// planned reports whether a rollout decides when the add-on gets its target, and admission is its decision.
	planned   bool
	admission addonconfig.Admission
	// gateWake is when a gate may decide something else by itself; zero for never.
	gateWake time.Time
	// rules are the policy of the add-on, and undo what it returns to from a content that was undone.
	rules gate.Gate
	undo  undo
	// degraded has the reason and the message for dependencies that are not satisfied; empty where all are.
	degraded metav1.Condition
	// undecoded is why it is not known what the policy says; empty where it is.
	undecoded string
	// stays is why an unselected add-on is still there, as the end of a sentence; empty where nothing is known of that.
	stays string
	// storeErr is why the content of the target could not be stored.
	storeErr error
}

// configuration is the decision about the configuration of one add-on.
type configuration struct {
	// target holds what the specs ask for.
	target addonconfig.Target
	// named are the configurations that specs name. What else an add-on returns to, the agent may have written, unless
	// how has it as completed.
	named []addonconfig.DesiredConfig
	how   addonconfig.Undo
	// references is the next status.configReferences.
	references []addonv1beta1.ConfigReference
	// configured is the condition Configured; nil leaves it unchanged.
	configured *metav1.Condition
	// gets reports whether the add-on gets the target, and held is why it keeps the configuration that it has, or what
	// of the target is not known yet.
	gets bool
	held string
	// recheck is when time alone may change the decision; zero for never.
	recheck time.Time
	// undecided reports that the rollout has not decided yet, so that nothing is to be reported.
	undecided bool
}

// wanted returns the configuration that the specs ask for. For an unselected add-on, it is that of its placements if
// all name the same configurations, and otherwise unknown.
func (f facts) wanted() addonconfig.Target {
	return addonconfig.NewTarget(addonconfig.Inputs{
		AddOn: f.addOn, CMA: f.cma, Placement: f.placement, States: f.states,
	})
}

// target returns the configuration that the add-on is to have: what the specs ask for, or in place of a content that
// was undone what it had before.
func (f facts) target() addonconfig.Target {
	wanted := f.wanted()
	if !f.undo.active {
		return wanted
	}
	return wanted.Instead(f.undo.to, f.addOn.Status.ConfigReferences)
}

// content returns the name of the content that the rollout gives by the specs, whatever the add-on itself names.
func (f facts) content() string {
	common := addonconfig.NewTarget(addonconfig.Inputs{
		AddOn: &addonv1beta1.ManagedClusterAddOn{}, CMA: f.cma, Placement: f.placement, States: f.states,
	})
	return gate.NameOfTarget(f.addOn.Name, common)
}

// returnedFrom reports whether the cluster returned from a content that the specs ask for still, and that is not to be
// tried again.
func (f facts) returnedFrom(content string) bool {
	noted := meta.FindStatusCondition(f.addOn.Status.Conditions, names.ConditionRolloutFailed)
	if noted == nil || f.rules.Policy() == nil || f.rules.Retried(content) {
		return false
	}
	return slices.Contains(f.undoneHere(), content) || noted.Reason == addonconfig.ReasonUndone &&
		f.wanted().GivesAll(addonconfig.ReadContents(noted.Message))
}

// undoneHere returns the contents that the cluster returned from and that its policy has as undone still, whatever the
// specs ask for now.
func (f facts) undoneHere() []string {
	noted := meta.FindStatusCondition(f.addOn.Status.Conditions, names.ConditionRolloutFailed)
	if noted == nil {
		return nil
	}
	return slices.DeleteFunc(addonconfig.ReadUndone(noted.Message), func(content string) bool {
		return !f.rules.Remembers(content)
	})
}

// decide decides the configuration of the add-on. If it cannot be determined, or the rollout does not admit the add-on,
// it keeps the configuration that it has, and the condition explains why.
func decide(f facts) configuration {
	target := f.target()
	decided := decideFor(f, target)
	decided.target, decided.named, decided.how = target, target.Desired, f.undo.how
	if f.undo.active { // Else the target is what the specs ask for.
		decided.named = f.wanted().Desired
	}
	return decided
}

func decideFor(f facts, target addonconfig.Target) configuration {
	current := f.addOn.Status.ConfigReferences
	if f.leaves(target) {
		return configuration{references: current, held: "the add-on is being deleted with the configuration that it has"}
	}
	if u := f.undo; u.failed && u.kept != "" && !u.from.Admitted(f.addOn) {
		held := gate.WasUndone(u.content, u.kept)
		return configuration{references: current, configured: notConfigured(held), held: held}
	}
	doubts := f.holding()
	if held := f.held(target, doubts); held != "" {
		return configuration{
			references: current, configured: f.heldCondition(held, doubts), held: held, recheck: f.recheck(doubts),
		}
	}
	if held := causes.WaitsForTurn + f.undecoded; f.planned && f.undecoded != "" && !target.Admitted(f.addOn) {
		return configuration{references: current, configured: notConfigured(held), held: held}
	}
	waiting := message.List(target.Waiting, maxListed, "; ")
	if !target.Admitted(f.addOn) && !f.admission.Granted {
		if !f.admission.Decided() {
			return configuration{references: current, held: "the rollout is being planned", undecided: true}
		}
		return configuration{
			references: current, configured: notConfigured(f.admission.Reason), held: f.admission.Reason,
			recheck: f.gateWake,
		}
	}
	if waiting != "" {
		return configuration{
			references: target.References, configured: notConfigured(waiting), held: waiting, gets: true,
		}
	}
	return configuration{references: target.References, gets: true, configured: &metav1.Condition{
		Type:    addonv1beta1.ManagedClusterAddOnConditionConfigured,
		Status:  metav1.ConditionTrue,
		Reason:  reasonConfigured,
		Message: cmp.Or(f.undoneMessage(), successMessage(target)),
	}}
}

// newlyAdmitted reports whether a rollout gives the add-on a configuration that its status does not show.
func (f facts) newlyAdmitted(decided configuration) bool {
	return f.planned && decided.gets && !decided.target.Admitted(f.addOn)
}

// leaves reports whether the add-on is being deleted and its target is not complete, or names other configurations: a
// pre-delete hook must not be lost because a configuration was deleted first, or because the placement no longer
// selects the cluster.
func (f facts) leaves(target addonconfig.Target) bool {
	have := f.addOn.Status.ConfigReferences
	switch {
	case f.addOn.DeletionTimestamp.IsZero():
		return false
	case len(target.Missing) > 0, len(target.Waiting) > 0:
		return true
	}
	// Nothing is recorded when the add-on was deleted in its first pass. Its finalizer may be there all the same.
	return len(have) > 0 && !addonconfig.SameConfigs(have, target.References)
}

// held returns why the add-on must keep its configuration, whatever the rollout decides; "" when it need not. doubts
// are those that hold it.
func (f facts) held(target addonconfig.Target, doubts []fleet.Doubt) string {
	switch {
	case len(doubts) > 0:
		var why []string
		for _, doubt := range doubts {
			why = append(why, doubt.Why.Error())
		}
		return fmt.Sprintf("the configuration is kept as it is, because it is unknown which one of "+
			"ClusterManagementAddOn %s this cluster is to have: %s", f.cma.Name, message.List(why, maxListed, "; "))
	case f.unselected():
		return "the configuration is kept as it is: no placement of ClusterManagementAddOn " + f.cma.Name +
			" selects the cluster any more, so the add-on is about to be uninstalled" + f.stays
	case f.lacksKind(target):
		return "the configuration is kept as it is: no placement of ClusterManagementAddOn " + f.cma.Name + " selects the " +
			"cluster any more, an add-on there brings this one along, and spec.defaultConfigs has no configuration of a " +
			"kind that it runs with"
	case len(target.Missing) > 0:
		return message.List(target.Missing, maxListed, "; ")
	case f.storeErr != nil:
		return "the content of the configuration cannot be stored, which a rollout needs to go back: " + f.storeErr.Error()
	}
	return ""
}

// lacksKind reports whether an add-on that another one brings along now would lose a kind of configuration that a
// placement gave it before: with the defaults it would not run any more. What the defaults gave, or its own spec, goes
// with these.
func (f facts) lacksKind(target addonconfig.Target) bool {
	gave := addonconfig.ReadContents(f.addOn.Annotations[names.AnnotationPlacementGave])
	brought := f.addOn.Labels[names.LabelInstalledBy] == names.InstalledByDependency
	if gave == nil || !brought || f.placement >= 0 || !f.installedByPlacements() {
		return false
	}
	has := addonconfig.ContentsOf(f.addOn.Status.ConfigReferences)
	return slices.ContainsFunc(f.addOn.Status.ConfigReferences, func(r addonv1beta1.ConfigReference) bool {
		return gave.Has(r.ConfigGroupResource, has) &&
			!slices.ContainsFunc(target.References, func(gets addonv1beta1.ConfigReference) bool {
				return gets.ConfigGroupResource == r.ConfigGroupResource
			})
	})
}

// unselected reports whether the add-on was installed by placements and none of them is known to select its cluster
// now. Until it is uninstalled or selected again, the defaults do not apply. They do apply to an add-on that a person
// created and no placement selects.
func (f facts) unselected() bool {
	return f.placement < 0 && f.installedByPlacements() &&
		f.addOn.Labels[names.LabelInstalledBy] == names.InstalledByPlacement
}

func (f facts) installedByPlacements() bool {
	return addonapi.InstalledByPlacements(f.cma) && addonapi.Managed(f.cma)
}

// holding returns the doubts because of which the add-on keeps its configuration. A new one has nothing to lose and
// waits only where it would get the defaults, for placements that do not exist.
func (f facts) holding() []fleet.Doubt {
	isNew := len(f.addOn.Status.ConfigReferences) == 0 && !f.configured()
	switch {
	case isNew && (f.placement >= 0 || !f.installedByPlacements()):
		return nil
	case isNew && !f.unselected():
		return slices.DeleteFunc(slices.Clone(f.doubts), func(d fleet.Doubt) bool { return !d.Missing })
	case f.unselected():
		return f.doubts
	}
	owner := fleet.Owner{Index: f.placement, Doubts: f.doubts}
	return owner.Keeps(addonconfig.Names(f.addOn.Status.ConfigReferences), func(placement int) []addonv1beta1.AddOnConfig {
		return addonconfig.Wanted(f.cma, placement, f.addOn.Spec.Configs)
	})
}

func (f facts) configured() bool {
	return meta.IsStatusConditionTrue(f.addOn.Status.Conditions, addonv1beta1.ManagedClusterAddOnConditionConfigured)
}

// recheck returns when time alone may end what holds the add-on; zero for never.
func (f facts) recheck(doubts []fleet.Doubt) time.Time {
	var wake time.Time
	if !f.unselected() {
		for _, doubt := range doubts {
			wake = reconcile.Earliest(wake, doubt.Until)
		}
	}
	return wake
}

// heldCondition returns the condition of an add-on that keeps its configuration. An add-on that is unselected, or of
// which that is in doubt, stays configured if it was: its configuration is not wrong.
func (f facts) heldCondition(held string, doubts []fleet.Doubt) *metav1.Condition {
	condition := notConfigured(held)
	if f.configured() && (f.unselected() || len(doubts) > 0) {
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonConfigured
		condition.Message = said(messageConfigured, held)
	}
	return condition
}

// successMessage returns the message for a configuration that is determined.
func successMessage(target addonconfig.Target) string {
	if len(target.Unsupported) == 0 {
		return messageConfigured
	}
	return said(messageConfigured, fmt.Sprintf("%d of %d configurations are determined, the others are of a kind that "+
		"the add-on does not support: %s", len(target.Desired)-len(target.Unsupported), len(target.Desired),
		message.List(target.Unsupported, maxListed, "; ")))
}

// undoneMessage returns the message of Configured of an add-on that has something else than the specs ask for, or is to
// have it; empty for any other.
func (f facts) undoneMessage() string {
	u := f.undo
	switch {
	case u.content == "" || u.failed && !u.active:
		return ""
	case u.failed:
		return said(messageConfigured, "content "+u.content+" failed on this cluster and was undone")
	case u.active:
		return said(messageConfigured, "content "+u.content+" was undone")
	}
	return said(messageConfigured, "content "+u.content+" was undone, and this cluster keeps what it has: "+u.kept)
}

func notConfigured(text string) *metav1.Condition {
	return &metav1.Condition{
		Type:    addonv1beta1.ManagedClusterAddOnConditionConfigured,
		Status:  metav1.ConditionFalse,
		Reason:  reasonNotConfigured,
		Message: said(messageNotConfigured, text),
	}
}

// said returns the words of OCM, and then what we know beside.
func said(words, ours string) string {
	if ours = strings.TrimSpace(ours); ours == "" {
		return words
	}
	return words + ": " + ours
}
