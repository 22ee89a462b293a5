package report

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/lease"
)

// ClusterFacts are the objects by which a cluster is followed.
type ClusterFacts struct {
	Now     time.Time
	Cluster *fleet.Cluster
	// Requests are its certificate requests.
	Requests []fleet.Request
	// Heartbeat is the last renewal of its Lease; zero where that is not known.
	Heartbeat time.Time
}

// ClusterChain follows a cluster.
func ClusterChain(name string, f ClusterFacts) Chain {
	chain := Chain{Kind: KindCluster, Name: name}
	if f.Cluster == nil {
		chain.Problem = AddOnFacts{}.missing(name, "")
		chain.Problem.Kind, chain.Problem.Namespace, chain.Problem.Name = KindCluster, "", name
		return chain
	}
	chain.Problem = ofCluster(f, latest(f.Requests))
	chain.Healthy = chain.Problem == nil
	of := said(f.Cluster.Status.Conditions)
	chain.Steps = named([]Step{
		of.condition("accepted", "HubAcceptedManagedCluster", ""), requested(f.Requests),
		of.condition("joined", "ManagedClusterJoined", ""), f.alive(),
		of.optional("certificate", names.ConditionCertificateRotated),
		of.optional("clock", "ManagedClusterConditionClockSynced"),
		of.optional("works", names.ConditionWorksPresent), of.optional("quiet", names.ConditionAgentQuiet),
	})
	return chain.mend()
}

// alive is the step of the heartbeat of a cluster. One that is old and that no hub manager judged has failed, too.
func (f ClusterFacts) alive() Step {
	beat := ""
	if !f.Heartbeat.IsZero() {
		beat = "last heartbeat at " + f.Heartbeat.UTC().Format(time.RFC3339)
	}
	s := said(f.Cluster.Status.Conditions).condition("alive", clusterv1.ManagedClusterConditionAvailable, beat)
	cause := causes.OfCluster(f.judged())
	if cause != nil && cause.Code == causes.ClusterSilent && cause.Condition == nil {
		s.State = Failed
	}
	return s
}

// judged is what the cause is judged by.
func (f ClusterFacts) judged() causes.Cluster {
	c := f.Cluster
	return causes.Cluster{
		Conditions: c.Status.Conditions, Accepted: c.Spec.HubAcceptsClient, Deleting: c.Metadata.Deleting(),
		Heartbeat: f.Heartbeat, Grace: lease.ClusterGrace(c.Spec.LeaseDurationSeconds), Now: f.Now,
	}
}

// ofCluster returns what is wrong with a cluster; nil for nothing. requests are the latest ones of agents that have no
// certificate.
func ofCluster(f ClusterFacts, requests map[string]*fleet.Request) *Problem {
	c := f.Cluster
	cause := causes.OfCluster(f.judged())
	if cause == nil {
		return nil
	}
	p := problem(cause, KindCluster, c.Metadata)
	p.Next = Command(KindCluster, "kubectl spokelet why cluster {name}", "{name}", c.Metadata.Name)
	request := requests[c.Metadata.Name]
	switch {
	case cause.Code == causes.ClusterNotAccepted:
		p.Since = fleet.Instant(c.Metadata.CreationTimestamp.Time)
		p.Message = "spec.hubAcceptsClient is false"
		p.Next = remedy(p)
	case cause.Code == causes.ClusterDenied && p.Message == "":
		p.Message = "spec.hubAcceptsClient is false, and was true"
	case cause.Code == causes.ClusterDeletion && p.Message == "":
		p.Since = fleet.Instant(c.Metadata.DeletionTimestamp.Time)
		p.Message = "finalizers are left: " + message.List(c.Metadata.Finalizers, 3, ", ")
	case cause.Code == causes.ClusterNotJoined:
		p.Since = fleet.Instant(c.Metadata.CreationTimestamp.Time)
		p.Message = "the cluster is accepted, and its agent has not worked with a credential of its own"
		p.ofRequest(request)
	case cause.Code == causes.ClusterSilent:
		if cause.Condition == nil {
			p.Message = "the last heartbeat was at " + f.Heartbeat.UTC().Format(time.RFC3339) +
				", and no hub manager has said so: see whether one runs, and whether the clock here is right"
		}
		if request != nil && asksAgain(c, request, cause.Since) {
			p.ofRequest(request)
		}
	}
	return p
}

// MayWaitForRequest reports whether the agent of a cluster may have no certificate, so that its requests are looked at.
func MayWaitForRequest(c *fleet.Cluster) bool {
	cause := causes.OfCluster(ClusterFacts{Cluster: c}.judged())
	return cause != nil && (cause.Code == causes.ClusterNotJoined || cause.Code == causes.ClusterSilent)
}

// asksAgain reports whether an agent made a request since its heartbeat stopped: it has no certificate any more, and
// asks for one as it did when it joined. A request from before that says nothing, because the agent had a certificate.
func asksAgain(c *fleet.Cluster, r *fleet.Request, silent time.Time) bool {
	stopped := fleet.Known(silent).Add(-lease.ClusterGrace(c.Spec.LeaseDurationSeconds))
	return !r.Metadata.CreationTimestamp.Time.Before(stopped)
}

// ofRequest makes a request of the agent the cause why a cluster has not joined, or is silent; nil for none.
func (p *Problem) ofRequest(r *fleet.Request) {
	if r == nil {
		return
	}
	p.Code = ofRequest(r)
	p.Title, p.Since = causes.Titles()[p.Code], fleet.Instant(r.Metadata.CreationTimestamp.Time)
	step := RequestStep(r)
	p.Message = strings.TrimSuffix("certificate request "+step.Evidence+": "+step.Detail, ": ")
	p.Next = Command(KindRequest, "kubectl spokelet why csr {name}", "{name}", r.Metadata.Name)
	if p.Code == causes.RequestPending {
		p.Message = fmt.Sprintf("certificate request %s is neither approved nor denied", r.Metadata.Name)
		p.Next = Command(KindCluster, "kubectl spokelet approve cluster {name}", "{name}", p.Name)
	}
}
