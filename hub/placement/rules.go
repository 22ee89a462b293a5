package placement

import (
	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/hub/placement/layout"
	"github.com/spokelet/spokelet/internal/kept"
)

// rules are the selectors of a Placement, parsed and compiled. They do not change while the spec does not.
type rules struct {
	// misconfigured says what is wrong with the spec; then the rest is empty.
	misconfigured error
	predicates    []selector
	// groups are the decision groups by name, in their order; clusters that none of them selects are in the rest.
	groups []group
	// size is the limit of clusters in a decision group.
	size layout.Size
	// labels and claims are the keys that the selectors look at; expressions reports whether there is a CEL expression,
	// which may look at everything.
	labels, claims map[string]bool
	expressions    bool
	// known are the outcomes for clusters, where there are expressions.
	known *outcomes
}

// selector is one alternative of a Placement: all of its parts must match.
type selector struct {
	labels, claims labels.Selector
	expressions    []expression
}

// group is a decision group with a name. Several selectors are several groups with one name in the spec.
type group struct {
	name      string
	selectors []selector
}

// expression is a CEL expression of a celSelector.
type expression struct {
	// path is the field of the Placement that has the text.
	path, text string
	// program returns it compiled. It is not kept here, because tenants create any number of Placements.
	program func() (cel.Program, error)
	// ready reports whether it is compiled.
	ready func() bool
}

// compiler compiles the expression that a field of a Placement has.
type compiler func(path, text string) (expression, error)

// outcomes remembers what the rules of a Placement say about clusters, because an expression takes a thousand times as
// long as a selector of labels.
type outcomes struct {
	kept.Map[types.UID, knownOutcome]
}

// knownOutcome is the outcome for one version of a cluster.
type knownOutcome struct {
	version string
	outcome outcome
}

// outcome holds what the predicates and decision groups of a Placement say about a cluster.
type outcome struct {
	// matches reports whether a predicate matches; group is then the index of the decision group, the number of groups for
	// the rest.
	matches bool
	group   int
	// failure is why an expression has no result for the cluster, which therefore does not match; expensive is why
	// expressions cost too much for it.
	failure, expensive string
	// cost is how much expressions cost, in units of CEL.
	cost uint64
	// unasked reports that an expression could not be evaluated while an event waits, so that nothing else counts.
	unasked bool
}

// costError is the error of an expression that costs too much.
type costError struct{ cause string }

// Error implements error.
func (e *costError) Error() string { return e.cause }
