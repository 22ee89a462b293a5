package report

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// AddOnFacts are the objects by which an add-on on a cluster is followed.
type AddOnFacts struct {
	Now        time.Time
	AddOn      *fleet.AddOn
	Definition *fleet.Definition
	Cluster    *fleet.Cluster
	// Requests are the certificate requests of the cluster, where it is in trouble that they may explain.
	Requests []fleet.Request
	// Decisions are the PlacementDecisions of the Placements of the definition.
	Decisions []fleet.Decision
	// Placements are these Placements, which tell why an add-on is not installed; nil where it is.
	Placements []fleet.Placement
	// Works are those of the add-on, also those on its hosting cluster.
	Works []fleet.Work
	// Others are the add-ons of the name on all clusters.
	Others []fleet.AddOn
	// Lacks reports that a resource, by its plural, could not be read.
	Lacks func(plural string) bool
}

// AddOnChain follows an add-on on a cluster.
func AddOnChain(namespace, name string, f AddOnFacts) Chain {
	chain := Chain{Kind: KindAddOn, Namespace: namespace, Name: name}
	if f.AddOn == nil {
		chain.Problem = f.missing(namespace, name)
		chain.Steps = []Step{f.cluster(), f.wanted(namespace)}
		return chain.mend()
	}
	chain.Problem = f.first()
	chain.Healthy = chain.Problem == nil
	f.quote(chain.Problem)
	if f.AddOn.Metadata.Deleting() {
		chain.Steps = []Step{f.cluster(), f.deletion()}
	} else {
		chain.Steps = []Step{
			f.cluster(), f.wanted(namespace), f.configured(chain.Problem),
			f.condition("registered", "RegistrationApplied", ""), f.credential(),
			f.condition("rendered", "ManifestApplied", f.rendered()), f.applied(), f.healthy(),
		}
	}
	if chain.Problem != nil {
		for i := range f.Others {
			other := OfAddOn(&f.Others[i], nil)
			if other != nil && other.like(chain.Problem) && f.Others[i].Metadata.Namespace != namespace {
				chain.Same++
			}
		}
	}
	return chain.mend()
}

// quote adds to a problem of works what the agent says of the first manifest, where the hub does not repeat it: OCM's
// does not.
func (f AddOnFacts) quote(p *Problem) {
	if p == nil || p.Code != causes.NotApplied {
		return
	}
	for i := range f.Works {
		if said := firstManifest(&f.Works[i]); said != "" {
			if !strings.Contains(p.Message, said) {
				p.Message = message.Sentence(p.Message) + " " + said
			}
			return
		}
	}
}

func (f AddOnFacts) lacks(plural string) bool { return f.Lacks != nil && f.Lacks(plural) }

// ofCluster returns the problem of the cluster; nil where it has none.
func (f AddOnFacts) ofCluster() *Problem {
	if f.Cluster == nil {
		return nil
	}
	return ofCluster(ClusterFacts{Now: f.Now, Cluster: f.Cluster}, latest(f.Requests))
}

// cluster is the step of the cluster.
func (f AddOnFacts) cluster() Step {
	s := Step{Name: "cluster", State: OK}
	switch p := f.ofCluster(); {
	case f.Cluster == nil && f.lacks("managedclusters"):
		s.State, s.Evidence = Waiting, "ManagedClusters cannot be read"
	case f.Cluster == nil:
		s.State, s.Evidence = Failed, "the ManagedCluster does not exist"
	case p != nil:
		s.State, s.Evidence, s.Detail = Failed, p.Title, p.Message
	default:
		s.Evidence = "accepted, joined and available"
	}
	return s
}

// wanted is the step of the install strategy.
func (f AddOnFacts) wanted(cluster string) Step {
	s := Step{Name: "wanted", State: OK}
	if f.Definition == nil {
		s.State, s.Evidence = Warning, "no ClusterManagementAddOn describes it"
		if f.lacks("clustermanagementaddons") {
			s.State, s.Evidence = Waiting, "ClusterManagementAddOns cannot be read"
		}
		return s
	}
	strategy := f.Definition.Spec.InstallStrategy
	if strategy.Type != "Placements" {
		s.Evidence = "installed by hand, the install strategy is Manual"
		return s
	}
	if ref, d := f.deciding(cluster); ref != nil {
		s.Evidence = fmt.Sprintf("placement %s selected the cluster (%s)", ref.Name, d.Metadata.Name)
		return s
	}
	s.State, s.Evidence = Warning, "no placement of the install strategy selects the cluster"
	if f.lacks("placementdecisions") {
		s.State, s.Evidence = Waiting, "PlacementDecisions cannot be read"
	}
	return s
}

// configured is the step of the configurations. An add-on that works and waits for its turn in a rollout is well.
func (f AddOnFacts) configured(p *Problem) Step {
	s := f.condition("configured", addonv1beta1.ManagedClusterAddOnConditionConfigured, configs(f.AddOn))
	switch {
	case p == nil && causes.Waits(f.AddOn.Status.Conditions) != nil:
		s.State, s.Evidence = Waiting, "it keeps its configuration until its turn in the rollout"
	case s.State == OK && p != nil && p.Kind == KindAddOn && p.Code == causes.ConfigurationKept:
		return f.condition("configured", addonv1beta1.ManagedClusterAddOnConditionProgressing, "")
	}
	return s
}

// condition is the step that one condition of the add-on reports.
func (f AddOnFacts) condition(name, kind, evidence string) Step {
	return said(f.AddOn.Status.Conditions).condition(name, kind, evidence)
}

// configs lists the configurations of an add-on.
func configs(a *fleet.AddOn) string {
	var all []string
	for _, config := range a.Status.ConfigReferences {
		if config.Desired == nil {
			continue
		}
		state := "in force"
		if config.Applied == nil || config.Applied.SpecHash != config.Desired.SpecHash {
			state = "not in force yet"
		}
		all = append(all, fmt.Sprintf("%s %s %s", strings.TrimSuffix(config.Resource, "s"), config.Desired.Name, state))
	}
	return message.List(all, 3, ", ")
}

// credential is the step of certificates and tokens.
func (f AddOnFacts) credential() Step {
	for _, kind := range []string{names.ConditionCertificateRotated, "TokenInfrastructureReady", "TokenRefreshed"} {
		c := meta.FindStatusCondition(f.AddOn.Status.Conditions, kind)
		if c != nil && c.Status != metav1.ConditionTrue {
			return f.condition("credential", kind, "")
		}
	}
	if meta.FindStatusCondition(f.AddOn.Status.Conditions, names.ConditionCertificateRotated) != nil {
		return f.condition("credential", names.ConditionCertificateRotated, "the certificate is valid")
	}
	if c := meta.FindStatusCondition(f.AddOn.Status.Conditions, "RegistrationApplied"); c != nil &&
		c.Reason == addonv1beta1.RegistrationAppliedNilRegistration {
		return Step{Name: "credential", Evidence: "none is needed", State: OK}
	}
	return f.condition("credential", "TokenRefreshed", "")
}

// rendered counts the works of the add-on.
func (f AddOnFacts) rendered() string {
	if len(f.Works) == 0 {
		return ""
	}
	manifests := 0
	works := make([]string, 0, len(f.Works))
	for i := range f.Works {
		manifests += len(f.Works[i].Spec.Workload.Manifests)
		works = append(works, f.Works[i].Metadata.Name)
	}
	return fmt.Sprintf("%s in ManifestWork %s", Count(manifests, "manifest"), message.List(works, 3, ", "))
}

// applied is the step of the works of the add-on.
func (f AddOnFacts) applied() Step {
	s := Step{Name: "applied", State: OK}
	if len(f.Works) == 0 {
		s.State, s.Evidence = Waiting, "there is no ManifestWork"
		if f.lacks("manifestworks") {
			s.Evidence = "ManifestWorks cannot be read"
		}
		return s
	}
	for i := range f.Works {
		p := OfWork(&f.Works[i])
		if p == nil {
			continue
		}
		s.Evidence, s.Detail, s.State = p.Title+": "+p.Name, p.Message, Failed
		if passes(&f.Works[i], p) {
			s.State = Waiting
		}
		if s.State == Failed {
			return s
		}
	}
	if s.State == Waiting {
		return s
	}
	s.Evidence = fmt.Sprintf("%d of %d works are applied and available", len(f.Works), len(f.Works))
	return s
}

// healthy is the step of the health of the add-on.
func (f AddOnFacts) healthy() Step {
	if c := meta.FindStatusCondition(f.AddOn.Status.Conditions, names.ConditionWorkloadsReady); c != nil {
		if c.Status == metav1.ConditionFalse {
			return f.condition("healthy", c.Type, "")
		}
	}
	return f.condition("healthy", "Available", "")
}

// deletion is the step of an add-on that is being deleted.
func (f AddOnFacts) deletion() Step {
	s := Step{Name: "deleted", State: Failed}
	s.Evidence = "finalizers are left: " + message.List(f.AddOn.Metadata.Finalizers, 3, ", ")
	if p := OfAddOn(f.AddOn, f.Cluster); p != nil && p.Message != "" {
		s.Detail = p.Message
	}
	return s
}
