package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// member is what a rollout looks at of one add-on on one cluster.
type member struct {
	// addOn has the namespace, the configurations of the spec, the references and the supported kinds.
	addOn *addonv1beta1.ManagedClusterAddOn
	// conditions are Progressing, Available and RegistrationApplied.
	conditions []metav1.Condition
	deleting   bool
	// cause is the most informative condition of an add-on that does not work, and causeSince since when; nil when it
	// works.
	cause      *metav1.Condition
	causeSince time.Time
	// other and otherSince are the same without Configured, which is False on every add-on that waits for its turn; nil
	// when the cause is another one.
	other      *metav1.Condition
	otherSince time.Time
}

// newMember returns what a rollout looks at of an add-on, and nothing else of it: a hub has tens of thousands.
func newMember(addOn *addonv1beta1.ManagedClusterAddOn) *member {
	m := &member{deleting: !addOn.DeletionTimestamp.IsZero(), addOn: &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: addOn.Namespace, Name: addOn.Name},
		Spec:       addonv1beta1.ManagedClusterAddOnSpec{Configs: addOn.Spec.Configs},
		Status: addonv1beta1.ManagedClusterAddOnStatus{
			ConfigReferences: addOn.Status.ConfigReferences, SupportedConfigs: addOn.Status.SupportedConfigs,
		},
	}}
	for _, kind := range []string{
		addonv1beta1.ManagedClusterAddOnConditionProgressing, addonv1beta1.ManagedClusterAddOnConditionAvailable,
		addonv1beta1.ManagedClusterAddOnRegistrationApplied,
	} {
		if c := meta.FindStatusCondition(addOn.Status.Conditions, kind); c != nil {
			kept := *c
			kept.Message = ""
			m.conditions = append(m.conditions, kept)
		}
	}
	m.addOn.Status.Conditions = m.conditions
	m.cause, m.causeSince = keep(stuckCause(addOn, blockingConditions()))
	if m.cause != nil && m.cause.Type == addonv1beta1.ManagedClusterAddOnConditionConfigured {
		m.other, m.otherSince = keep(stuckCause(addOn, blockingConditions()[1:]))
	}
	return m
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
	for _, reference := range m.addOn.Status.ConfigReferences {
		applied := reference.LastAppliedConfig
		if applied == nil || reference.DesiredConfig == nil || *applied != *reference.DesiredConfig {
			return false
		}
	}
	return true
}

// unhealthySince returns since when the agent is not available; zero when it is, or when that is not known.
func (m *member) unhealthySince() time.Time {
	c := meta.FindStatusCondition(m.conditions, addonv1beta1.ManagedClusterAddOnConditionAvailable)
	if c == nil || c.Status != metav1.ConditionFalse {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}
