package rollout

import (
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonconfig"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
)

// settled is how long an add-on that becomes unavailable after it was completed counts as failed at least: a cluster
// reports on its pods a moment after it has applied them.
const settled = 10 * time.Second

// member is what a rollout looks at of one add-on on one cluster, and nothing else of it: a hub has tens of thousands.
type member struct {
	cluster  string
	uid      types.UID
	deleting bool
	// deleted is since when it is being deleted, by the clock of the API server.
	deleted time.Time
	// configs are those of the spec, references and supported are in the status.
	configs    []addonv1beta1.AddOnConfig
	references []addonv1beta1.ConfigReference
	supported  []addonv1beta1.ConfigGroupResource
	// registered reports whether the condition RegistrationApplied is there.
	registered bool
	// progress is the reason of Progressing, empty without the condition, and progressSince since when it is that.
	progress      string
	progressSince time.Time
	// progressAt is the same as the condition says it, also where that is to come.
	progressAt time.Time
	// notConfigured is since when the condition Configured is False; zero when it is not.
	notConfigured time.Time
	// way is what addon.spokelet.io/RolloutFailed says, about the contents wayOf of the rollout.
	way   addonconfig.Way
	wayOf addonconfig.Contents
	// undone are the contents that it returned from, by the same condition.
	undone []string
	// unheard reports whether nothing is known of the health of an agent any more.
	unheard bool
	// unhealthySince is since when the agent is not available, by the clock of the hub manager; zero when it is, or when
	// that is not known.
	unhealthySince time.Time
	// noted are the contents of the rollout that addon.spokelet.io/Soaked is about. soaked reports whether they had soaked
	// when they broke; if they had not, firstComplete is since when they were complete at first, and zero if they never
	// broke.
	noted         addonconfig.Contents
	soaked        bool
	firstComplete time.Time
	// cause is the most informative condition of an add-on that does not work, and causeSince since when; nil when it
	// works.
	cause      *metav1.Condition
	causeSince time.Time
	// other and otherSince are the same without Configured, which is False on every add-on that waits for its turn; nil
	// when the cause is another one.
	other      *metav1.Condition
	otherSince time.Time
}

// saw takes over since when this process sees that the agent is not available: an agent writes the condition with its
// own clock, which may be hours off. At first sight, when before is nil, that is what the condition says, at most now.
// So is since when it makes progress.
func (m *member) saw(before *member, now time.Time) *member {
	switch {
	case m.unhealthySince.IsZero():
	case before != nil && before.uid == m.uid && !before.unhealthySince.IsZero():
		m.unhealthySince = before.unhealthySince
	case before != nil && before.uid == m.uid, m.unhealthySince.After(now):
		m.unhealthySince = now
	}
	if m.progressSince.After(now) { // Nobody but the hub manager should write that; where no policy says so, it ends.
		m.progressSince = now
		if before != nil && before.uid == m.uid && before.progress == m.progress &&
			addonconfig.SameDesired(before.references, m.references) {
			m.progressSince = before.progressSince
		}
	}
	if m.way.Since.After(now) { // The clock of the hub manager that wrote it was ahead.
		m.way.Since = now
		if before != nil && before.uid == m.uid && before.way.Stage == m.way.Stage && !before.way.Since.After(now) {
			m.way.Since = before.way.Since
		}
	}
	return m
}

// well reports whether the agent is available, or nothing is known of that. One that fell is to say that it is.
func (m *member) well(fell bool) bool { return m.unhealthySince.IsZero() && (!fell || !m.unheard) }

// newMember returns what a rollout looks at of an add-on. It shares the lists of another member that has equal ones;
// nil for none.
func newMember(addOn *addonv1beta1.ManagedClusterAddOn, like *member) *member {
	status := &addOn.Status
	m := &member{
		cluster: addOn.Namespace, uid: addOn.UID, deleting: !addOn.DeletionTimestamp.IsZero(), configs: addOn.Spec.Configs,
		references: status.ConfigReferences, supported: status.SupportedConfigs,
	}
	if m.deleting {
		m.deleted = addOn.DeletionTimestamp.Time
	}
	if like != nil && reflect.DeepEqual(like.references, m.references) {
		m.references = like.references
	}
	if like != nil && slices.Equal(like.supported, m.supported) {
		m.supported = like.supported
	}
	find := func(kind string) *metav1.Condition { return meta.FindStatusCondition(status.Conditions, kind) }
	m.registered = find(addonv1beta1.ManagedClusterAddOnRegistrationApplied) != nil
	if c := find(addonv1beta1.ManagedClusterAddOnConditionProgressing); c != nil {
		m.progress, m.progressSince, m.progressAt = c.Reason, c.LastTransitionTime.Time, c.LastTransitionTime.Time
	}
	if c := find(names.ConditionSoaked); c != nil {
		m.noted, m.soaked = addonconfig.ReadContents(c.Message), c.Status == metav1.ConditionTrue
		if c.Status == metav1.ConditionFalse {
			m.firstComplete = c.LastTransitionTime.Time
		}
	}
	c := find(names.ConditionRolloutFailed)
	if c != nil {
		m.undone = addonconfig.ReadUndone(c.Message)
	}
	if c != nil && c.Reason != addonconfig.ReasonUndoneBefore && !c.LastTransitionTime.Time.Before(m.progressAt) {
		m.way = addonconfig.Way{Stage: c.Reason, Since: c.LastTransitionTime.Time}
		m.wayOf = addonconfig.ReadContents(c.Message)
	}
	if c := find(addonv1beta1.ManagedClusterAddOnConditionConfigured); c != nil && c.Status == metav1.ConditionFalse {
		m.notConfigured = c.LastTransitionTime.Time
	}
	c = find(addonv1beta1.ManagedClusterAddOnConditionAvailable)
	if c != nil && c.Status == metav1.ConditionFalse {
		m.unhealthySince = c.LastTransitionTime.Time
	}
	m.unheard = c != nil && c.Status == metav1.ConditionUnknown
	m.cause, m.causeSince = keep(stuckCause(addOn, causes.BlockingConditions()))
	if m.cause != nil && m.cause.Type == addonv1beta1.ManagedClusterAddOnConditionConfigured {
		m.other, m.otherSince = keep(stuckCause(addOn, causes.BlockingConditions()[1:]))
	}
	return m
}

// addOn returns the add-on as far as its target depends on it.
func (m *member) addOn() *addonv1beta1.ManagedClusterAddOn {
	addOn := &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.cluster},
		Spec:       addonv1beta1.ManagedClusterAddOnSpec{Configs: m.configs},
		Status: addonv1beta1.ManagedClusterAddOnStatus{
			ConfigReferences: m.references, SupportedConfigs: m.supported,
		},
	}
	if m.registered {
		addOn.Status.Conditions = []metav1.Condition{{Type: addonv1beta1.ManagedClusterAddOnRegistrationApplied}}
	}
	return addOn
}

// supportedConfigs returns the configurations of the spec, except those of kinds that the add-on does not support.
func (m *member) supportedConfigs() []addonv1beta1.AddOnConfig {
	if len(m.configs) == 0 {
		return nil
	}
	addOn := m.addOn()
	return slices.DeleteFunc(slices.Clone(m.configs), func(c addonv1beta1.AddOnConfig) bool {
		return addonconfig.SupportOf(addOn, c.ConfigGroupResource) == addonconfig.NotSupported
	})
}

// goes returns since when an add-on is being deleted; zero when it is not, or does not exist.
func (m *member) goes() time.Time {
	if m == nil {
		return time.Time{}
	}
	return m.deleted
}

// due returns when an add-on that broke while it soaked should have soaked at first; zero for one that did not.
func (m *member) due(soak time.Duration) time.Time {
	if m.firstComplete.IsZero() {
		return time.Time{}
	}
	return m.firstComplete.Add(max(soak, settled))
}

// keep copies a condition out of its add-on.
func keep(c *metav1.Condition, since time.Time) (*metav1.Condition, time.Time) {
	if c == nil {
		return nil, time.Time{}
	}
	kept := *c
	return &kept, since
}

// applied reports whether all desired configurations were applied.
func (m *member) applied() bool {
	for _, reference := range m.references {
		applied := reference.LastAppliedConfig
		if applied == nil || reference.DesiredConfig == nil || *applied != *reference.DesiredConfig {
			return false
		}
	}
	return true
}

// broken reports whether the add-on has a configuration that is not well on the cluster: its works or pods are not
// ready, or its agent is not available. One that is well and soaks is not recorded as applied yet, and is not broken.
func (m *member) broken() bool {
	completed := m.progress == addonv1beta1.ProgressingReasonCompleted
	return len(m.references) > 0 && (!completed || !m.unhealthySince.IsZero())
}
