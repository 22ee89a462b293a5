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
	p, own := OfAddOn(f.AddOn), f.ofCluster()
	switch {
	case f.Cluster == nil && p != nil && !f.lacks("managedclusters"):
		return f.noCluster(f.AddOn.Metadata.Namespace, f.AddOn.Metadata.Name)
	case own != nil && p != nil && explains(own.Code, p.Code):
		return own
	case (p == nil || p.Code == causes.ConfigurationKept) && causes.Waits(f.AddOn.Status.Conditions) != nil:
		if stopped := f.stopped(); stopped != nil {
			return stopped
		}
	}
	return p
}

// explains reports whether trouble of a cluster is the first cause of trouble of an add-on on it. A cluster that is not
// in explains all; one that is silent or ill explains what the cluster does, and not what the hub does.
func explains(cluster, addOn causes.Code) bool {
	out := []causes.Code{
		causes.ClusterNotAccepted, causes.ClusterDenied, causes.NamespaceOfOthers, causes.AccessFailed,
		causes.ClusterDeletion, causes.ClusterNotJoined, causes.RequestPending, causes.RequestDenied,
		causes.RequestUnsigned,
	}
	ill := []causes.Code{causes.ClusterSilent, causes.ClusterUnavailable}
	byCluster := []causes.Code{
		causes.ClusterSilent, causes.LeaseStopped, causes.LeaseMissing, causes.HealthUnknown, causes.ManifestsAwaited,
		causes.ProbeFailed, causes.NotApplied,
	}
	return slices.Contains(out, cluster) || slices.Contains(ill, cluster) && slices.Contains(byCluster, addOn)
}

// stopped is the problem of an add-on that waits in a rollout that does not go on; nil where it goes on.
func (f AddOnFacts) stopped() *Problem {
	if f.Definition == nil {
		return nil
	}
	for _, progress := range f.Definition.Status.InstallProgressions {
		if f.selectedBy(progress.PlacementRef, f.AddOn.Metadata.Namespace) == nil {
			continue
		}
		if c := causes.Stopped(progress.Conditions); c != nil {
			cause := &causes.Cause{Code: causes.RolloutStopped, Condition: c, Since: c.LastTransitionTime.Time}
			return problem(cause, KindAddOn, f.AddOn.Metadata)
		}
	}
	return nil
}

// selecting is the first decision of a Placement of the definition that selects a cluster; nil for none.
func (f AddOnFacts) selecting(cluster string) *fleet.Decision {
	if f.Definition == nil {
		return nil
	}
	for _, ref := range f.Definition.Spec.InstallStrategy.Placements {
		if d := f.selectedBy(ref, cluster); d != nil {
			return d
		}
	}
	return nil
}

// selectedBy is the decision of a Placement that selects a cluster; nil for none.
func (f AddOnFacts) selectedBy(ref fleet.PlacementRef, cluster string) *fleet.Decision {
	for i := range f.Decisions {
		d := &f.Decisions[i]
		if d.Metadata.Namespace != ref.Namespace || d.Metadata.Labels[names.LabelPlacement] != ref.Name {
			continue
		}
		for _, one := range d.Status.Decisions {
			if one.ClusterName == cluster {
				return d
			}
		}
	}
	return nil
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
	if f.Definition == nil {
		p.Message += ", and no ClusterManagementAddOn " + message.Quote(name)
	} else {
		f.unwanted(p)
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
	case f.selecting(p.Namespace) != nil:
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

// selectsAny reports whether a Placement selects a cluster.
func (f AddOnFacts) selectsAny(ref fleet.PlacementRef) bool {
	return slices.ContainsFunc(f.Decisions, func(d fleet.Decision) bool {
		return d.Metadata.Namespace == ref.Namespace && d.Metadata.Labels[names.LabelPlacement] == ref.Name &&
			len(d.Status.Decisions) > 0
	})
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
