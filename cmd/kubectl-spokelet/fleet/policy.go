package fleet

import (
	"context"
	"slices"

	"github.com/spokelet/spokelet/internal/policies"
)

// Policy is an AddOnPolicy, which has the name of its add-on.
type Policy struct {
	Metadata Meta                     `json:"metadata"`
	Spec     policies.AddOnPolicySpec `json:"spec,omitzero"`
	Status   struct {
		ObservedGeneration int64              `json:"observedGeneration,omitempty"`
		Waiting            int32              `json:"waiting,omitempty"`
		Contents           []policies.Content `json:"contents,omitempty"`
		Unused             []string           `json:"unused,omitempty"`
		Undone             []policies.Undone  `json:"undone,omitempty"`
		Placements         []PolicyPlacement  `json:"placements,omitempty"`
		Problem            string             `json:"problem,omitempty"`
	} `json:"status,omitzero"`
}

// PolicyPlacement is what a policy says of a placement.
type PolicyPlacement struct {
	// Placement is its namespace and name, or policies.NoPlacement.
	Placement string `json:"placement"`
	// Problem is why an undo does not happen that was asked for; empty where nothing hinders one.
	Problem string `json:"problem,omitempty"`
}

// Window is a MaintenanceWindow.
type Window struct {
	Metadata Meta                             `json:"metadata"`
	Spec     policies.MaintenanceWindowSpec   `json:"spec,omitzero"`
	Status   policies.MaintenanceWindowStatus `json:"status,omitzero"`
}

func policyResource(plural string) Resource {
	gv := policies.GroupVersion()
	return Resource{Group: gv.Group, Version: gv.Version, Plural: plural}
}

// offered are the resources that a hub need not serve: one of OCM has none of ours.
func offered() []Resource { return []Resource{ResourceOf[Policy](), ResourceOf[Window]()} }

// Offered reads the objects of a kind that a hub need not serve; none, and no gap, where it does not.
func Offered[T Policy | Window](ctx context.Context, r *Reader, q Query) ([]T, error) {
	q.Resource = ResourceOf[T]()
	all, err := Read[T](ctx, r, q)
	r.Gaps = WithoutOffered(r.Gaps)
	return all, err
}

// WithoutOffered returns the gaps that are more than that a hub does not serve what it need not.
func WithoutOffered(gaps []Gap) []Gap {
	var kept []Gap
	for _, g := range gaps {
		if !g.Missing || !slices.ContainsFunc(offered(), func(r Resource) bool { return g.isOf(r.String()) }) {
			kept = append(kept, g)
		}
	}
	return kept
}
