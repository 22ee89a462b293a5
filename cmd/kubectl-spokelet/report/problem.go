package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
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
}

// Fleet holds the objects by which a whole fleet is judged.
type Fleet struct {
	Clusters    []fleet.Cluster
	AddOns      []fleet.AddOn
	Definitions []fleet.Definition
	Requests    []fleet.Request
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
	silent := map[string]bool{}
	requests := latest(f.Requests)
	for i := range f.Clusters {
		p := ofCluster(&f.Clusters[i], requests)
		if p == nil {
			continue
		}
		silent[p.Name] = true
		all = append(all, *p)
	}
	known := map[string]bool{}
	for i := range f.Definitions {
		known[f.Definitions[i].Metadata.Name] = true
		all = append(all, ofDefinition(&f.Definitions[i])...)
	}
	for i := range f.AddOns {
		p := OfAddOn(&f.AddOns[i])
		if p == nil {
			continue
		}
		p.Behind = behind(p, silent[p.Namespace])
		all = append(all, *p)
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(order(a.Kind), order(b.Kind)), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Namespace, b.Namespace))
	})
	return all
}

// behind reports whether a problem of an add-on follows from that its cluster has one.
func behind(p *Problem, cluster bool) bool {
	return cluster && (p.Code == causes.ClusterSilent || p.Code == causes.AddOnUnmanaged)
}

// order is the place of a kind in a list of problems: what may explain others comes first.
func order(kind string) int {
	return slices.Index([]string{KindCluster, KindDefinition, KindAddOn, KindWork, KindRequest}, kind)
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
func Decided(r *fleet.Request) bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c fleet.RequestCondition) bool {
		return c.Type == "Approved" || c.Type == "Denied"
	})
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
	case RequestStep(r).State == Failed:
		return codes[1]
	}
	return codes[2]
}

// ofCluster returns what is wrong with a cluster; nil for nothing. requests are the latest ones of agents that have no
// certificate.
func ofCluster(c *fleet.Cluster, requests map[string]*fleet.Request) *Problem {
	cause := causes.OfCluster(c.Status.Conditions, c.Spec.HubAcceptsClient, c.Metadata.Deleting())
	if cause == nil {
		return nil
	}
	p := problem(cause, KindCluster, c.Metadata)
	p.Next = "kubectl spokelet why cluster " + c.Metadata.Name
	switch {
	case cause.Code == causes.ClusterNotAccepted:
		p.Since = &c.Metadata.CreationTimestamp.Time
		p.Message = "spec.hubAcceptsClient is false"
		p.Next = remedy(p)
	case cause.Code == causes.ClusterDenied && p.Message == "":
		p.Message = "spec.hubAcceptsClient is false, and was true"
	case cause.Code == causes.ClusterDeletion && p.Message == "":
		p.Since = &c.Metadata.DeletionTimestamp.Time
		p.Message = "finalizers are left: " + message.List(c.Metadata.Finalizers, 3, ", ")
	case cause.Code == causes.ClusterNotJoined:
		p.Since = &c.Metadata.CreationTimestamp.Time
		p.Message = "the cluster is accepted, and its agent has not worked with a credential of its own"
		p.ofRequest(requests[c.Metadata.Name])
	}
	return p
}

// ofRequest makes a request of the agent the cause why a cluster has not joined; nil for none.
func (p *Problem) ofRequest(r *fleet.Request) {
	if r == nil {
		return
	}
	p.Code = ofRequest(r)
	p.Title, p.Since = causes.Titles()[p.Code], &r.Metadata.CreationTimestamp.Time
	step := RequestStep(r)
	p.Message = strings.TrimSuffix("certificate request "+step.Evidence+": "+step.Detail, ": ")
	p.Next = "kubectl spokelet why csr " + r.Metadata.Name
	if p.Code == causes.RequestPending {
		p.Message = fmt.Sprintf("certificate request %s is neither approved nor denied", r.Metadata.Name)
		p.Next = "kubectl spokelet approve cluster " + p.Name
	}
}

// OfAddOn returns what is wrong with an add-on on a cluster; nil for nothing.
func OfAddOn(a *fleet.AddOn) *Problem {
	cause := causes.OfAddOn(causes.AddOn{Conditions: a.Status.Conditions, Deleting: a.Metadata.Deleting()})
	if cause == nil {
		return nil
	}
	p := problem(cause, KindAddOn, a.Metadata)
	if cause.Code == causes.ClusterSilent {
		p.Next = "kubectl spokelet why cluster " + a.Metadata.Namespace
		return p
	}
	p.Next = fmt.Sprintf("kubectl spokelet why addon %s -n %s", a.Metadata.Name, a.Metadata.Namespace)
	if cause.Code == causes.DeletionWaits && cause.Condition == nil {
		p.Since = &a.Metadata.DeletionTimestamp.Time
		p.Message = "finalizers are left: " + message.List(a.Metadata.Finalizers, 3, ", ")
	}
	return p
}

// ofDefinition returns what is wrong with the rollouts of an add-on.
func ofDefinition(d *fleet.Definition) []Problem {
	var all []Problem
	for _, progress := range d.Status.InstallProgressions {
		c := causes.Stopped(progress.Conditions)
		if c == nil {
			continue
		}
		cause := &causes.Cause{Code: causes.RolloutStopped, Condition: c, Since: c.LastTransitionTime.Time}
		p := problem(cause, KindDefinition, d.Metadata)
		p.Next = "kubectl spokelet tree addon " + d.Metadata.Name
		all = append(all, *p)
	}
	return all
}

// problem returns the problem that a cause is for an object.
func problem(cause *causes.Cause, kind string, of fleet.Meta) *Problem {
	p := &Problem{Code: cause.Code, Title: causes.Titles()[cause.Code], Kind: kind, Namespace: of.Namespace, Name: of.Name}
	if !cause.Since.IsZero() {
		p.Since = &cause.Since
	}
	if cause.Condition != nil {
		p.Reason, p.Message = cause.Condition.Reason, cause.Condition.Message
	}
	return p
}
