package report

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
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

// certificateLayout is how agents, also those of OCM, write the end of a certificate into the message of its condition.
const certificateLayout = "2006-01-02 15:04:05 -0700 MST"

// certificateEnds returns when a certificate ends, by the message of its condition; nil where that has no instant.
func certificateEnds(conditions []metav1.Condition) *time.Time {
	_, ends, known := certificateLife(conditions)
	if !known {
		return nil
	}
	return &ends
}

// certificateLife returns from when until when a certificate is valid, by the message of its condition.
func certificateLife(conditions []metav1.Condition) (from, to time.Time, known bool) {
	c := meta.FindStatusCondition(conditions, names.ConditionCertificateRotated)
	if c == nil {
		return from, to, false
	}
	_, life, _ := strings.Cut(c.Message, " starting from ")
	first, last, _ := strings.Cut(life, " to ")
	from, errFrom := time.Parse(certificateLayout, first)
	to, errTo := time.Parse(certificateLayout, last)
	return from, to, errFrom == nil && errTo == nil
}
