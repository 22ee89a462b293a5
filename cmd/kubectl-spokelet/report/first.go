package report

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// first is the first cause why an add-on that is there does not work, or does not get its configuration; nil for none.
func (f AddOnFacts) first() *Problem {
	cluster := f.ofCluster()
	own, by := f.judge(cluster)
	switch {
	case by != nil:
		return by
	case own != nil:
		return own
	case cluster != nil && cluster.cause.CutOff():
		return cluster
	}
	return f.ofWorks()
}

// judge returns what is wrong with an add-on, and the trouble of its cluster that is the first cause of that; nil for
// none. It is the one judgement of all commands. cluster is what is wrong with the cluster.
func (f AddOnFacts) judge(cluster *Problem) (own, by *Problem) {
	if f.Cluster == nil && !f.lacks("managedclusters") {
		return f.noCluster(f.AddOn.Metadata.Namespace, f.AddOn.Metadata.Name), nil
	}
	own = OfAddOn(f.AddOn, f.Cluster)
	switch {
	case own != nil && cluster != nil && causes.Explains(cluster.cause, own.cause):
		return own, cluster
	case (own == nil || own.Code == causes.ConfigurationKept) && causes.Waits(f.AddOn.Status.Conditions) != nil:
		if stopped := f.stopped(); stopped != nil {
			return stopped, nil
		}
	}
	return own, nil
}

// ofWorks is the problem of the first work of an add-on that is otherwise well; nil for none.
func (f AddOnFacts) ofWorks() *Problem {
	for i := range f.Works {
		if p := OfWork(&f.Works[i]); p != nil && !passes(&f.Works[i], p) {
			return p
		}
	}
	return nil
}

// stopped is the problem of an add-on that waits in a rollout that does not go on; nil where it goes on.
func (f AddOnFacts) stopped() *Problem {
	ref, _ := f.deciding(f.AddOn.Metadata.Namespace)
	if ref == nil {
		return nil
	}
	for _, progress := range f.Definition.Status.InstallProgressions {
		if progress.Namespace != ref.Namespace || progress.Name != ref.Name {
			continue
		}
		if p := ofStop(progress, KindAddOn, f.AddOn.Metadata); p != nil {
			return p
		}
	}
	return nil
}

// deciding is the Placement of the definition that decides about a cluster, with its decision: the last one that
// selects it. Both are nil for none.
func (f AddOnFacts) deciding(cluster string) (*fleet.PlacementRef, *fleet.Decision) {
	if f.Definition == nil {
		return nil, nil
	}
	refs := f.Definition.Spec.InstallStrategy.Placements
	for i := range slices.Backward(refs) {
		for n := range f.Decisions {
			d := &f.Decisions[n]
			if isOf(d, refs[i]) && slices.Contains(clustersOf(d), cluster) {
				return &refs[i], d
			}
		}
	}
	return nil, nil
}

// isOf reports whether a decision is one of a Placement.
func isOf(d *fleet.Decision, ref fleet.PlacementRef) bool {
	return d.Metadata.Namespace == ref.Namespace && d.Metadata.Labels[names.LabelPlacement] == ref.Name
}

// clustersOf are the clusters that a decision selects.
func clustersOf(d *fleet.Decision) []string {
	all := make([]string, 0, len(d.Status.Decisions))
	for _, one := range d.Status.Decisions {
		all = append(all, one.ClusterName)
	}
	return all
}

// noCluster is the problem of an add-on whose cluster does not exist.
func (f AddOnFacts) noCluster(namespace, name string) *Problem {
	return &Problem{
		Code: causes.ClusterMissing, Title: causes.Titles()[causes.ClusterMissing], Kind: KindAddOn, Namespace: namespace,
		Name: name, Message: "there is no ManagedCluster " + message.Quote(namespace), Next: "kubectl spokelet get clusters",
	}
}

// missing is the problem of an add-on that does not exist.
func (f AddOnFacts) missing(namespace, name string) *Problem {
	if f.Cluster == nil && !f.lacks("managedclusters") {
		return f.noCluster(namespace, name)
	}
	p := &Problem{Code: causes.AddOnMissing, Kind: KindAddOn, Namespace: namespace, Name: name}
	p.Message = "there is no ManagedClusterAddOn of this name for the cluster"
	p.Next = "kubectl spokelet get addons -A"
	switch {
	case f.Definition != nil:
		f.unwanted(p)
	case f.lacks("clustermanagementaddons"):
		p.Message += "; whether a ClusterManagementAddOn wants it may not be read"
	default:
		p.Message += ", and no ClusterManagementAddOn " + message.Quote(name)
	}
	p.Title = causes.Titles()[p.Code]
	return p
}

// unwanted says why an add-on that is defined is not installed on a cluster.
func (f AddOnFacts) unwanted(p *Problem) {
	strategy := f.Definition.Spec.InstallStrategy
	switch {
	case strategy.Type != "Placements":
		p.Message += ", and the install strategy is Manual: create it"
		return
	case f.lacks("placementdecisions") || f.lacks("placements"):
		return
	case f.isSelected(p.Namespace):
		p.Message += ", which a placement selects: the hub manager has not installed it yet"
		return
	}
	p.Message += ", and no placement of the install strategy selects the cluster"
	var empty []string
	for _, ref := range strategy.Placements {
		name := ref.Namespace + "/" + ref.Name
		at := slices.IndexFunc(f.Placements, func(one fleet.Placement) bool {
			return one.Metadata.Namespace == ref.Namespace && one.Metadata.Name == ref.Name
		})
		if at < 0 {
			p.Code, p.Message = causes.PlacementMissing, "placement "+name+" of the install strategy does not exist"
			return
		}
		if !f.selectsAny(ref) {
			empty = append(empty, "placement "+name+" selects no cluster"+because(f.Placements[at]))
		}
	}
	if len(empty) > 0 && len(empty) == len(strategy.Placements) {
		p.Code, p.Message = causes.PlacementEmpty, strings.Join(empty, "; ")
	}
}

// isSelected reports whether a Placement of the definition selects a cluster.
func (f AddOnFacts) isSelected(cluster string) bool {
	ref, _ := f.deciding(cluster)
	return ref != nil
}

// selectsAny reports whether a Placement selects a cluster.
func (f AddOnFacts) selectsAny(ref fleet.PlacementRef) bool {
	return len(selectedBy(ref, f.Decisions)) > 0
}

// because is what a Placement says why it selects nothing, behind a colon; empty where it says nothing.
func because(p fleet.Placement) string {
	wrong := meta.FindStatusCondition(p.Status.Conditions, "PlacementMisconfigured")
	if wrong != nil && wrong.Status == metav1.ConditionTrue {
		return ": " + wrong.Message
	}
	c := meta.FindStatusCondition(p.Status.Conditions, "PlacementSatisfied")
	switch {
	case c == nil:
		return ": no placement controller has decided it"
	case c.Status == metav1.ConditionTrue:
		return ""
	}
	return ": " + c.Message
}
