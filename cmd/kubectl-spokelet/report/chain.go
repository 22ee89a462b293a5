package report

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// State is how a step of a chain is.
type State string

const (
	// OK is a step that is done.
	OK State = "ok"
	// Failed is a step that does not go on.
	Failed State = "FAIL"
	// Warning is a step that is done and not as it should be.
	Warning State = "warn"
	// Waiting is a step that an earlier one holds up, or that nothing is known of.
	Waiting State = "-"
)

// Step is one step from the wish to what runs.
type Step struct {
	Name     string `json:"name"`
	Evidence string `json:"evidence"`
	State    State  `json:"state"`
	// Detail is the message of the object, in full.
	Detail string `json:"detail,omitempty"`
	// Lines are lines of a log.
	Lines []string `json:"lines,omitempty"`
	// Side is "cluster" for what was seen on the managed cluster; empty for what the hub knows.
	Side string `json:"side,omitempty"`
}

// Chain is the way of one object from the wish to what runs.
type Chain struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Healthy reports that nothing is wrong.
	Healthy bool   `json:"healthy"`
	Steps   []Step `json:"steps"`
	// Problem is the first cause; nil where nothing is wrong.
	Problem *Problem `json:"problem"`
	// Same is how many other clusters have a problem of the same kind with this add-on.
	Same int `json:"same,omitempty"`
	// Looked is the address of the managed cluster that was looked into; empty for none.
	Looked string `json:"looked,omitempty"`
}

// mend names what mends the first cause of a chain, and returns it. An answer does not contradict itself: where nothing
// is wrong, a step that is not as it should be is a warning.
func (c Chain) mend() Chain {
	if c.Problem != nil {
		c.Problem.Next = remedy(c.Problem)
	}
	for i := range c.Steps {
		if c.Healthy && c.Steps[i].State == Failed {
			c.Steps[i].State = Warning
		}
	}
	return c
}

// said are the conditions of an object, as steps.
type said []metav1.Condition

// condition is the step that one condition reports.
func (all said) condition(name, kind, evidence string) Step {
	c := meta.FindStatusCondition(all, kind)
	s := Step{Name: name, Evidence: evidence, State: Waiting}
	switch {
	case c == nil:
		s.Evidence = strings.TrimSpace("nothing is said about it yet " + evidence)
	case c.Status == metav1.ConditionTrue && c.Reason == addonv1beta1.RegistrationAppliedNilRegistration:
		s.State, s.Evidence = OK, "it asks for no credential"
	case c.Status == metav1.ConditionTrue:
		s.State = OK
		if s.Evidence == "" {
			s.Evidence = c.Reason
		}
	default:
		s.State, s.Evidence, s.Detail = Failed, fmt.Sprintf("%s is %s (%s)", c.Type, c.Status, c.Reason), c.Message
	}
	return s
}

// optional is a step only where its condition is there.
func (all said) optional(name, kind string) Step {
	if meta.FindStatusCondition(all, kind) == nil {
		return Step{}
	}
	return all.condition(name, kind, "")
}

// named leaves out the steps that are not there.
func named(steps []Step) []Step {
	return slices.DeleteFunc(steps, func(s Step) bool { return s.Name == "" })
}
