package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
)

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
		next := "kubectl spokelet approve csr {name}"
		if Decided(r) || r.Metadata.Labels[names.LabelAddonName] != "" { // That approves none of an add-on.
			next = "kubectl get csr {name} -o yaml"
		}
		chain.Problem.Next = Command(KindRequest, next, "{name}", name)
	}
	return chain
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

// latest returns the latest request of the agent of each cluster that has led to no certificate.
func latest(requests []fleet.Request) map[string]*fleet.Request {
	found := map[string]*fleet.Request{}
	for i := range requests {
		r := &requests[i]
		cluster := r.Metadata.Labels[names.LabelClusterName]
		if cluster == "" || r.Metadata.Labels[names.LabelAddonName] != "" {
			continue
		}
		before := found[cluster]
		if before == nil || before.Metadata.CreationTimestamp.Before(&r.Metadata.CreationTimestamp) {
			found[cluster] = r
		}
	}
	maps.DeleteFunc(found, func(_ string, r *fleet.Request) bool { return RequestStep(r).State == OK })
	return found
}

// Decided reports whether a certificate request is approved or denied.
func Decided(r *fleet.Request) bool { return has(r, "Approved") || has(r, "Denied") }

// has reports whether a certificate request has a condition.
func has(r *fleet.Request, kind string) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c fleet.RequestCondition) bool { return c.Type == kind })
}

// ofRequest returns the code of a certificate request that leads to no certificate.
func ofRequest(r *fleet.Request) causes.Code {
	codes := [3]causes.Code{causes.RequestPending, causes.RequestDenied, causes.RequestUnsigned}
	if r.Metadata.Labels[names.LabelAddonName] != "" {
		codes = [3]causes.Code{causes.RequestWaits, causes.RequestRefused, causes.RequestNotSigned}
	}
	switch {
	case !Decided(r):
		return codes[0]
	case has(r, "Denied"):
		return codes[1]
	}
	return codes[2] // Nothing signs for its signer, or that refused it.
}
