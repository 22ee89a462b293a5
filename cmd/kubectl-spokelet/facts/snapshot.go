package facts

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/internal/names"
)

// Snapshot is a fleet as it was read once, with what is judged of it. It does not change.
type Snapshot struct {
	report.Fleet

	// Hub is the name of the source, and Kubernetes its version.
	Hub, Kubernetes string
	Findings        []report.Finding
	Problems        []report.Problem
	Groups          []report.Group
	Alikes          []report.Likes
	Matrix          []report.AddOnRow
	// Policies are the AddOnPolicies, and Windows the MaintenanceWindows, by name.
	Policies []*report.Policy
	Windows  []report.Window
	// Gaps are what could not be read.
	Gaps []fleet.Gap

	windows   []fleet.Window
	source    fleet.Source
	lacksPart func(plural string) bool
	rollouts  map[string]report.Rollout
	byAddOn   map[string][]fleet.AddOn
	byCluster map[string][]int
	clusters  map[string]*fleet.Cluster
	// problems are those of add-ons by cluster.
	problems map[string][]report.Problem
}

// Take reads and judges a whole fleet. The error is that of a source that does not answer.
func Take(ctx context.Context, r *fleet.Reader, now time.Time) (*Snapshot, error) {
	s := &Snapshot{Hub: r.Source.Name(), source: r.Source}
	var err error
	if s.Kubernetes, err = r.Source.Version(ctx); err != nil {
		return nil, err
	}
	if s.Fleet, err = Fleet(ctx, r, ""); err != nil {
		return nil, err
	}
	if s.Decisions, err = fleet.List[fleet.Decision](ctx, r, fleet.Query{}); err != nil {
		return nil, err
	}
	if err := s.readRules(ctx, r); err != nil {
		return nil, err
	}
	s.Now = now
	if s.Findings, err = Hub(ctx, r, s.Clusters, now); err != nil {
		return nil, err
	}
	s.Gaps, s.lacksPart = r.Gaps, r.LacksPart
	s.judge()
	return s, nil
}

// readRules reads policies and windows.
func (s *Snapshot) readRules(ctx context.Context, r *fleet.Reader) error {
	found, err := fleet.Offered[fleet.Policy](ctx, r, fleet.Query{})
	if err != nil {
		return err
	}
	for i := range found {
		s.Policies = append(s.Policies, report.PolicyOf(&found[i]))
	}
	slices.SortFunc(s.Policies, func(a, b *report.Policy) int { return strings.Compare(a.AddOn, b.AddOn) })
	s.windows, err = fleet.Offered[fleet.Window](ctx, r, fleet.Query{})
	s.Windows = report.WindowsOf(s.windows, "")
	return err
}

// Rules returns the policy of an add-on, which is nil for none, and the windows that are for it.
func (s *Snapshot) Rules(addOn string) (*report.Policy, []report.Window) {
	at, found := slices.BinarySearchFunc(s.Policies, addOn, func(p *report.Policy, name string) int {
		return strings.Compare(p.AddOn, name)
	})
	windows := report.WindowsOf(s.windows, addOn)
	if !found {
		return nil, windows
	}
	return s.Policies[at], windows
}

// judge judges what was read.
func (s *Snapshot) judge() {
	slices.SortStableFunc(s.AddOns, func(a, b fleet.AddOn) int {
		return strings.Compare(a.Metadata.Name, b.Metadata.Name)
	})
	s.byAddOn, s.byCluster = map[string][]fleet.AddOn{}, map[string][]int{}
	begin := 0
	for i := range s.AddOns {
		m := &s.AddOns[i].Metadata
		if m.Name != s.AddOns[begin].Metadata.Name {
			begin = i
		}
		s.byAddOn[m.Name] = s.AddOns[begin : i+1]
		s.byCluster[m.Namespace] = append(s.byCluster[m.Namespace], i)
	}
	s.clusters = make(map[string]*fleet.Cluster, len(s.Clusters))
	for i := range s.Clusters {
		s.clusters[s.Clusters[i].Metadata.Name] = &s.Clusters[i]
	}
	s.Problems = report.Problems(s.Fleet)
	s.problems = map[string][]report.Problem{}
	for i := range s.Problems {
		if p := &s.Problems[i]; p.Kind == report.KindAddOn {
			s.problems[p.Namespace] = append(s.problems[p.Namespace], *p)
		}
	}
	s.Groups = report.Groups(s.Problems)
	s.Alikes = report.Alikes(s.Fleet, s.Problems)
	s.rollouts = map[string]report.Rollout{}
	if !s.Lacks("managedclusteraddons") { // Else clusters would be said to be without their add-ons.
		for i := range s.Definitions {
			d := &s.Definitions[i]
			name := d.Metadata.Name
			s.rollouts[name] = report.RolloutOf(name, d, s.byAddOn[name], s.Decisions)
		}
		for name, addOns := range s.byAddOn {
			if _, defined := s.rollouts[name]; !defined {
				s.rollouts[name] = report.RolloutOf(name, nil, addOns, nil)
			}
		}
	}
	s.Matrix = report.Matrix(s.Fleet, s.Problems, s.rollouts)
}

// ofName returns an object by its name; nil for none.
func ofName[T any](all []T, is func(*T) bool) *T {
	if i := slices.IndexFunc(all, func(one T) bool { return is(&one) }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Definition returns the definition of an add-on; nil for none.
func (s *Snapshot) Definition(name string) *fleet.Definition {
	return ofName(s.Definitions, func(d *fleet.Definition) bool { return d.Metadata.Name == name })
}

// Rollout returns how far an add-on is; false where that is not known.
func (s *Snapshot) Rollout(name string) (report.Rollout, bool) {
	far, known := s.rollouts[name]
	return far, known
}

// OfName returns the add-ons of a name on all clusters.
func (s *Snapshot) OfName(name string) []fleet.AddOn { return s.byAddOn[name] }

// Cluster returns a cluster; nil for none.
func (s *Snapshot) Cluster(name string) *fleet.Cluster { return s.clusters[name] }

// On returns the add-ons of a cluster.
func (s *Snapshot) On(cluster string) []fleet.AddOn {
	all := make([]fleet.AddOn, 0, len(s.byCluster[cluster]))
	for _, i := range s.byCluster[cluster] {
		all = append(all, s.AddOns[i])
	}
	return all
}

// ProblemsOn returns the problems of the add-ons of a cluster.
func (s *Snapshot) ProblemsOn(cluster string) []report.Problem { return s.problems[cluster] }

// ProblemOf returns the problem of an add-on on a cluster; nil for none.
func (s *Snapshot) ProblemOf(cluster, name string) *report.Problem {
	return ofName(s.problems[cluster], func(p *report.Problem) bool { return p.Name == name })
}

// LacksPart reports whether a resource, or an object of it, could not be read.
func (s *Snapshot) LacksPart(plural string) bool { return s.lacksPart(plural) }

// Reader returns a reader of the source of the snapshot, for what it does not keep.
func (s *Snapshot) Reader() *fleet.Reader { return &fleet.Reader{Source: s.source} }

// AddOn returns what an add-on on a cluster depends on, as AddOn does: works and, where it is not installed, placements
// are read, and the rest is that of the snapshot.
func (s *Snapshot) AddOn(ctx context.Context, r *fleet.Reader, cluster, name string) (report.AddOnFacts, error) {
	f := report.AddOnFacts{
		Now: s.Now, Cluster: s.Cluster(cluster), Definition: s.Definition(name), Decisions: s.Decisions,
		Others: s.OfName(name),
	}
	f.Lacks = func(plural string) bool {
		if plural == "managedclusters" && s.Undecoded != nil {
			return s.Lacks(plural) || s.Undecoded(cluster)
		}
		return s.LacksPart(plural) || r.LacksPart(plural)
	}
	f.AddOn = ofName(f.Others, func(a *fleet.AddOn) bool { return a.Metadata.Namespace == cluster })
	for i := range s.Requests {
		if s.Requests[i].Metadata.Labels[names.LabelClusterName] == cluster {
			f.Requests = append(f.Requests, s.Requests[i])
		}
	}
	var err error
	if f.AddOn == nil && f.Cluster != nil {
		if f.Placements, err = Placements(ctx, r, f.Definition); err != nil {
			return f, err
		}
	}
	host := ""
	if f.AddOn != nil {
		host = f.AddOn.Metadata.Annotations[names.AnnotationHostingCluster]
	}
	f.Works, err = Works(ctx, r, fleet.Meta{Namespace: cluster, Name: name}, host)
	return f, err
}
