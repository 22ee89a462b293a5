package report

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
)

// Problem is something that is wrong with one object. Its fields are the schema of "-o json", version 1.
type Problem struct {
	Code      causes.Code `json:"code"`
	Title     string      `json:"title"`
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	Reason    string      `json:"reason,omitempty"`
	Message   string      `json:"message,omitempty"`
	// Since is when it began; null where nothing says that.
	Since *time.Time `json:"since"`
	// Next is the command that looks closer or mends it.
	Next string `json:"next,omitempty"`
	// Behind reports that another problem of the fleet explains this one: the cluster of an add-on is silent.
	Behind bool `json:"behind,omitempty"`

	// cause is what the problem was made of; nil for one that is not about conditions.
	cause *causes.Cause
}

// Fleet holds the objects by which a whole fleet is judged, or one cluster of it.
type Fleet struct {
	Now         time.Time
	Clusters    []fleet.Cluster
	AddOns      []fleet.AddOn
	Definitions []fleet.Definition
	Requests    []fleet.Request
	// Heartbeats are the last renewals of Leases by cluster, where they were read.
	Heartbeats map[string]time.Time
	// Cluster is the one that is judged alone; empty for all. Decisions are then those of the Placements of add-ons that
	// wait on it: a rollout that stopped is a problem of the definition where a fleet is judged, and else of the add-on
	// that it holds up.
	Cluster   string
	Decisions []fleet.Decision
	// Lacks reports that a resource, by its plural, could not be read.
	Lacks func(plural string) bool
	// Undecoded reports that a cluster is there, and could not be decoded; nil for none.
	Undecoded func(cluster string) bool
}

// lacks is Lacks for what is known of one cluster.
func (f Fleet) lacks(cluster string) func(plural string) bool {
	if f.Undecoded == nil || !f.Undecoded(cluster) {
		return f.Lacks
	}
	return func(plural string) bool { return plural == "managedclusters" || f.Lacks != nil && f.Lacks(plural) }
}

// Kinds of objects in answers.
const (
	KindCluster    = "cluster"
	KindAddOn      = "addon"
	KindDefinition = "definition"
	KindWork       = "work"
	KindRequest    = "csr"
)

// Problems returns what is wrong with a fleet: clusters first, then definitions, then add-ons, each by name.
func Problems(f Fleet) []Problem {
	var all []Problem
	clusters, troubled := map[string]*fleet.Cluster{}, map[string]*Problem{}
	requests := latest(f.Requests)
	for i := range f.Clusters {
		c := &f.Clusters[i]
		name := c.Metadata.Name
		clusters[name] = c
		if p := ofCluster(ClusterFacts{Now: f.Now, Cluster: c, Heartbeat: f.Heartbeats[name]}, requests); p != nil {
			troubled[name] = p
			all = append(all, *p)
		}
	}
	definitions := map[string]*fleet.Definition{}
	for i := range f.Definitions {
		switch d := &f.Definitions[i]; f.Cluster {
		case "":
			all = append(all, ofDefinition(d)...)
		default:
			definitions[d.Metadata.Name] = d
		}
	}
	for i := range f.AddOns {
		a := &f.AddOns[i]
		of := AddOnFacts{
			Now: f.Now, AddOn: a, Cluster: clusters[a.Metadata.Namespace], Definition: definitions[a.Metadata.Name],
			Decisions: f.Decisions, Lacks: f.lacks(a.Metadata.Namespace),
		}
		if own, by := of.judge(troubled[a.Metadata.Namespace]); own != nil {
			own.Behind = by != nil
			all = append(all, *own)
		}
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(order(a.Kind), order(b.Kind)), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	return all
}

// order is the place of a kind in a list of problems: what may explain others comes first.
func order(kind string) int {
	return slices.Index([]string{KindCluster, KindDefinition, KindAddOn, KindWork, KindRequest}, kind)
}

// OfAddOn returns what is wrong with an add-on by itself; nil for nothing. cluster is nil where it is not known.
func OfAddOn(a *fleet.AddOn, cluster *fleet.Cluster) *Problem {
	alive := cluster != nil &&
		meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
	cause := causes.OfAddOn(causes.AddOn{
		Conditions: a.Status.Conditions, Deleting: a.Metadata.Deleting(), Hosted: causes.Hosted(a.Metadata.Annotations),
		ClusterAlive: alive,
	})
	if cause == nil {
		return nil
	}
	p := problem(cause, KindAddOn, a.Metadata)
	if cause.Code == causes.ClusterSilent {
		p.Next = Command(KindCluster, "kubectl spokelet why cluster {cluster}", "{cluster}", a.Metadata.Namespace)
		return p
	}
	p.Next = Command(KindAddOn, "kubectl spokelet why addon {name} -n {cluster}",
		"{name}", a.Metadata.Name, "{cluster}", a.Metadata.Namespace)
	switch {
	case cause.Code == causes.DeletionWaits && cause.Condition == nil:
		p.Since = fleet.Instant(a.Metadata.DeletionTimestamp.Time)
		p.Message = "finalizers are left: " + message.List(a.Metadata.Finalizers, 3, ", ")
	case cause.Code == causes.HealthUnknown && p.Reason == causes.ReasonClusterSilent:
		p.Message = "the heartbeat of the cluster is back, and nothing has said since whether the add-on works"
	}
	return p
}

// ofDefinition returns what is wrong with the rollouts of an add-on.
func ofDefinition(d *fleet.Definition) []Problem {
	var all []Problem
	for _, progress := range d.Status.InstallProgressions {
		if p := ofStop(progress, KindDefinition, d.Metadata); p != nil {
			p.Next = Command(KindDefinition, "kubectl spokelet tree addon {name}", "{name}", d.Metadata.Name)
			all = append(all, *p)
		}
	}
	return all
}

// ofStop returns the problem that a rollout on the clusters of a Placement is for an object; nil where it goes on.
func ofStop(p fleet.Progression, kind string, of fleet.Meta) *Problem {
	c := causes.Stopped(p.Conditions)
	if c == nil {
		return nil
	}
	return problem(&causes.Cause{Code: causes.RolloutStopped, Condition: c, Since: c.LastTransitionTime.Time}, kind, of)
}

// problem returns the problem that a cause is for an object.
func problem(cause *causes.Cause, kind string, of fleet.Meta) *Problem {
	p := &Problem{Code: cause.Code, Title: causes.Titles()[cause.Code], Kind: kind, Namespace: of.Namespace, Name: of.Name}
	p.cause = cause
	p.Since = fleet.Instant(cause.Since)
	if cause.Condition != nil {
		p.Reason, p.Message = cause.Condition.Reason, cause.Condition.Message
	}
	return p
}
