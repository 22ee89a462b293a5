package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/internal/causes"
	"github.com/spokelet/spokelet/internal/names"
)

// Details are what a list adds to an object that is asked for in more detail.
type Details struct {
	// Kubernetes is the version of the cluster, and Agent that of its agent; empty where it reports none.
	Kubernetes string `json:"kubernetes,omitempty"`
	Agent      string `json:"agent,omitempty"`
	// Ends is when the certificate of the agent or of the add-on ends; null where that is not known.
	Ends *time.Time `json:"certificateEnds,omitempty"`
	// Heartbeat is when the agent was last heard of; null where that is not known.
	Heartbeat *time.Time `json:"heartbeat,omitempty"`
	// Content is what is in force, or how much of it.
	Content string `json:"content,omitempty"`
}

// ClusterDetails returns the details of a cluster. heartbeat is the last renewal of its Lease; nil for none.
func ClusterDetails(c *fleet.Cluster, heartbeat *time.Time) Details {
	d := Details{
		Kubernetes: c.Status.Version.Kubernetes, Ends: certificateEnds(c.Status.Conditions), Heartbeat: heartbeat,
	}
	for _, claim := range c.Status.Claims {
		if claim.Name == names.ClaimAgentVersion {
			d.Agent = claim.Value
		}
	}
	return d
}

// AddOnDetails returns the details of an add-on.
func AddOnDetails(a *fleet.AddOn) Details {
	return Details{Ends: certificateEnds(a.Status.Conditions), Content: inForce(a)}
}

// WorkDetails returns the details of a work.
func WorkDetails(w *fleet.Work) Details {
	return Details{Content: Count(len(w.Spec.Workload.Manifests), "manifest")}
}

// certificateEnds returns when a certificate ends; nil where nothing says it.
func certificateEnds(conditions []metav1.Condition) *time.Time {
	life, known := lifeOf(conditions)
	if !known {
		return nil
	}
	return fleet.Instant(life.To)
}

// lifeOf returns the life of a certificate; false where nothing says it.
func lifeOf(conditions []metav1.Condition) (causes.Life, bool) {
	life, said := causes.LifeOf(conditions)
	return life, said && !fleet.Known(life.From).IsZero() && !fleet.Known(life.To).IsZero()
}
