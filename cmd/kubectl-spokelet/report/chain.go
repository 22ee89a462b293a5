package report

import (
	"fmt"
	"slices"
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
	// Same is how many other clusters have a problem with the same code for this add-on.
	Same int `json:"same,omitempty"`
	// Looked is the address of the managed cluster that was looked into; empty for none.
	Looked string `json:"looked,omitempty"`
}

// AddOnFacts are the objects by which an add-on on a cluster is followed.
type AddOnFacts struct {
	Now        time.Time
	AddOn      *fleet.AddOn
	Definition *fleet.Definition
	Cluster    *fleet.Cluster
	// Decisions are the PlacementDecisions of the Placements of the definition.
	Decisions []fleet.Decision
	// Placements are these Placements, which tell why an add-on is not installed; nil where it is.
	Placements []fleet.Placement
	Works      []fleet.Work
	// Others are the add-ons of the name on all clusters.
	Others []fleet.AddOn
	// Lacks reports that a resource, by its plural, could not be read.
	Lacks func(plural string) bool
}

// mend names what mends the first cause of a chain, and returns it.
func (c Chain) mend() Chain {
	if c.Problem != nil {
		c.Problem.Next = remedy(c.Problem)
	}
	return c
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
	if f.AddOn.Metadata.Deleting() {
		chain.Steps = []Step{f.cluster(), f.deletion()}
	} else {
		chain.Steps = []Step{
			f.cluster(), f.wanted(namespace), f.configured(),
			f.condition("registered", "RegistrationApplied", ""), f.credential(),
			f.condition("rendered", "ManifestApplied", f.rendered()), f.applied(), f.healthy(),
		}
	}
	chain.Healthy = chain.Problem == nil
	if chain.Problem != nil {
		for i := range f.Others {
			other := OfAddOn(&f.Others[i])
			if other != nil && other.Code == chain.Problem.Code && f.Others[i].Metadata.Namespace != namespace {
				chain.Same++
			}
		}
	}
	return chain.mend()
}

func (f AddOnFacts) lacks(plural string) bool { return f.Lacks != nil && f.Lacks(plural) }

// ofCluster returns the problem of the cluster; nil where it has none.
func (f AddOnFacts) ofCluster() *Problem {
	if f.Cluster == nil {
		return nil
	}
	return ofCluster(f.Cluster, nil)
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
	if d := f.selecting(cluster); d != nil {
		placement := d.Metadata.Labels[names.LabelPlacement]
		s.Evidence = fmt.Sprintf("placement %s selected the cluster (%s)", placement, d.Metadata.Name)
		return s
	}
	s.State, s.Evidence = Warning, "no placement of the install strategy selects the cluster"
	if f.lacks("placementdecisions") {
		s.State, s.Evidence = Waiting, "PlacementDecisions cannot be read"
	}
	return s
}

// condition is the step that one condition of the add-on reports.
func (f AddOnFacts) condition(name, kind, evidence string) Step {
	c := meta.FindStatusCondition(f.AddOn.Status.Conditions, kind)
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

// configured is the step of the configurations. An add-on that works and waits for its turn in a rollout is well.
func (f AddOnFacts) configured() Step {
	s := f.condition("configured", "Configured", configs(f.AddOn))
	if waits := causes.Waits(f.AddOn.Status.Conditions); waits != nil && f.first() == nil {
		s.State, s.Evidence = Waiting, "it keeps its configuration until its turn in the rollout"
	}
	return s
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
		if p := OfWork(&f.Works[i]); p != nil {
			return Step{Name: "applied", State: Failed, Evidence: p.Title + ": " + p.Name, Detail: p.Message}
		}
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
	if p := OfAddOn(f.AddOn); p != nil && p.Message != "" {
		s.Detail = p.Message
	}
	return s
}

// OfWork returns what is wrong with a work; nil for nothing.
func OfWork(w *fleet.Work) *Problem {
	applied := meta.FindStatusCondition(w.Status.Conditions, "Applied")
	available := meta.FindStatusCondition(w.Status.Conditions, "Available")
	cause := &causes.Cause{}
	switch {
	case len(w.Spec.Workload.Manifests) == 0 && !w.Metadata.Deleting():
		return nil // An agent has nothing to say of a work without manifests.
	case w.Metadata.Deleting():
		cause.Code, cause.Condition = causes.WorkDeletion, meta.FindStatusCondition(w.Status.Conditions, "Deleting")
	case applied == nil || applied.ObservedGeneration != 0 && applied.ObservedGeneration != w.Metadata.Generation:
		cause.Code, cause.Since = causes.WorkNotSeen, w.Metadata.CreationTimestamp.Time
	case applied.Status != metav1.ConditionTrue:
		cause.Code, cause.Condition = causes.WorkNotApplied, applied
	case available == nil || available.Status != metav1.ConditionTrue:
		cause.Code, cause.Condition = causes.WorkNotAvailable, available
	default:
		return nil
	}
	if cause.Condition != nil {
		cause.Since = cause.Condition.LastTransitionTime.Time
	}
	p := problem(cause, KindWork, w.Metadata)
	if said := firstManifest(w); said != "" && cause.Code != causes.WorkDeletion {
		p.Message = said
	}
	if cause.Code == causes.WorkNotSeen {
		p.Message = fmt.Sprintf("the agent has not reported generation %d", w.Metadata.Generation)
	}
	p.Next = fmt.Sprintf("kubectl spokelet why work %s -n %s", w.Metadata.Name, w.Metadata.Namespace)
	return p
}

// firstManifest returns what the agent says of the first manifest that is not applied or not available; empty where all
// are.
func firstManifest(w *fleet.Work) string {
	for _, kind := range []string{"Applied", "Available"} {
		for _, m := range w.Status.Resources.Manifests {
			c := meta.FindStatusCondition(m.Conditions, kind)
			if c == nil || c.Status == metav1.ConditionTrue {
				continue
			}
			return fmt.Sprintf("%s: %s", message.Object(m.Resource.Kind, m.Resource.Namespace, m.Resource.Name), c.Message)
		}
	}
	return ""
}

// ClusterChain follows a cluster. requests are its certificate requests, heartbeat the last renewal of its Lease; zero
// where that is not known.
func ClusterChain(name string, c *fleet.Cluster, requests []fleet.Request, heartbeat time.Time) Chain {
	chain := Chain{Kind: KindCluster, Name: name}
	if c == nil {
		chain.Problem = AddOnFacts{}.missing(name, "")
		chain.Problem.Kind, chain.Problem.Namespace, chain.Problem.Name = KindCluster, "", name
		return chain
	}
	chain.Problem = ofCluster(c, latest(requests))
	chain.Healthy = chain.Problem == nil
	beat := ""
	if !heartbeat.IsZero() {
		beat = "last heartbeat at " + heartbeat.UTC().Format(time.RFC3339)
	}
	of := AddOnFacts{AddOn: &fleet.AddOn{}}
	of.AddOn.Status.Conditions = c.Status.Conditions
	asked := requested(requests)
	if chain.Healthy && asked.State == Failed { // The certificate in use is valid.
		asked.State = Warning
	}
	chain.Steps = []Step{
		of.condition("accepted", "HubAcceptedManagedCluster", ""), asked,
		of.condition("joined", "ManagedClusterJoined", ""),
		of.condition("alive", "ManagedClusterConditionAvailable", beat),
		of.optional("certificate", names.ConditionCertificateRotated),
		of.optional("clock", "ManagedClusterConditionClockSynced"),
		of.optional("works", names.ConditionWorksPresent), of.optional("quiet", names.ConditionAgentQuiet),
	}
	chain.Steps = slices.DeleteFunc(chain.Steps, func(s Step) bool { return s.Name == "" })
	return chain.mend()
}

// optional is a step only where its condition is there.
func (f AddOnFacts) optional(name, kind string) Step {
	if meta.FindStatusCondition(f.AddOn.Status.Conditions, kind) == nil {
		return Step{}
	}
	return f.condition(name, kind, "")
}

// requested is the step of the certificate requests of an agent.
func requested(requests []fleet.Request) Step {
	var latest *fleet.Request
	for i := range requests {
		r := &requests[i]
		if r.Metadata.Labels[names.LabelAddonName] != "" {
			continue
		}
		if latest == nil || latest.Metadata.CreationTimestamp.Before(&r.Metadata.CreationTimestamp) {
			latest = r
		}
	}
	if latest == nil {
		return Step{}
	}
	step := RequestStep(latest)
	step.Name = "requested"
	return step
}

// RequestStep says how far a certificate request is.
func RequestStep(r *fleet.Request) Step {
	s := Step{Name: "request", Evidence: r.Metadata.Name, State: OK}
	for _, c := range r.Status.Conditions {
		switch c.Type {
		case "Denied", "Failed":
			s.State, s.Detail = Failed, c.Message
			s.Evidence = fmt.Sprintf("%s is %s (%s)", r.Metadata.Name, strings.ToLower(c.Type), c.Reason)
			return s
		case "Approved":
			s.Evidence = r.Metadata.Name + " is approved"
		}
	}
	switch {
	case !Decided(r):
		s.State, s.Evidence = Failed, r.Metadata.Name+" waits for approval"
		for _, c := range r.Status.Conditions {
			s.Detail = strings.TrimSpace(c.Reason + ": " + c.Message)
		}
	case len(r.Status.Certificate) == 0:
		s.State, s.Evidence = Warning, r.Metadata.Name+" is approved, and no certificate is in it"
	default:
		s.Evidence = r.Metadata.Name + " is approved and signed"
	}
	return s
}

// RequestChain follows a certificate request.
func RequestChain(name string, r *fleet.Request) Chain {
	chain := Chain{Kind: KindRequest, Name: name}
	if r == nil {
		chain.Problem = &Problem{
			Code: causes.ObjectMissing, Title: "a certificate request does not exist", Kind: KindRequest, Name: name,
			Message: "there is no CertificateSigningRequest of this name; the API server deletes those that are an hour old",
			Next:    "kubectl get csr",
		}
		return chain
	}
	step := RequestStep(r)
	chain.Steps = []Step{step}
	chain.Healthy = step.State == OK
	if !chain.Healthy {
		cause := &causes.Cause{Code: ofRequest(r), Since: r.Metadata.CreationTimestamp.Time}
		chain.Problem = problem(cause, KindRequest, r.Metadata)
		chain.Problem.Message = strings.TrimSuffix(step.Evidence+": "+step.Detail, ": ")
		chain.Problem.Next = "kubectl certificate approve " + name
		if Decided(r) {
			chain.Problem.Next = "kubectl get csr " + name + " -o yaml"
		}
	}
	return chain
}

// WorkChain follows a work.
func WorkChain(namespace, name string, w *fleet.Work) Chain {
	chain := Chain{Kind: KindWork, Namespace: namespace, Name: name}
	if w == nil {
		chain.Problem = &Problem{
			Code: causes.ObjectMissing, Title: "a work does not exist", Kind: KindWork, Namespace: namespace, Name: name,
			Message: "there is no ManifestWork of this name for the cluster", Next: "kubectl spokelet get works -n " + namespace,
		}
		return chain
	}
	chain.Problem = OfWork(w)
	chain.Healthy = chain.Problem == nil
	if chain.Healthy && len(w.Spec.Workload.Manifests) == 0 {
		chain.Steps = []Step{{Name: "applied", Evidence: "0 manifests", State: OK}}
		return chain
	}
	of := AddOnFacts{AddOn: &fleet.AddOn{}}
	of.AddOn.Status.Conditions = w.Status.Conditions
	chain.Steps = []Step{
		of.condition("applied", "Applied", Count(len(w.Spec.Workload.Manifests), "manifest")),
		of.condition("available", "Available", ""), of.optional("deleting", "Deleting"),
	}
	chain.Steps = slices.DeleteFunc(chain.Steps, func(s Step) bool { return s.Name == "" })
	return chain.mend()
}
