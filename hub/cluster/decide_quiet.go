package cluster

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/spokelet/spokelet/hub/cluster/meter"
	"github.com/spokelet/spokelet/internal/names"
)

// kindUser is the kind of a user who requests certificates for a cluster and is none of its agents.
const kindUser = "user"

const (
	reasonQuiet    = "AgentQuiet"
	reasonWrites   = "WritesTooOften"
	reasonFlips    = "ConditionsFlip"
	reasonRequests = "CertificatesRequestedTooOften"
)

// quietCondition returns the condition that says of an accepted cluster what its agent does more often than a healthy
// one. It is there only once there was something to say, and stays as it is while the meter has not counted for long
// enough to know that it is over.
func quietCondition(f facts) *metav1.Condition {
	c := metav1.Condition{
		Type: names.ConditionAgentQuiet, Status: metav1.ConditionTrue, Reason: reasonQuiet,
		Message: "The agent writes and requests no more often than a healthy one",
	}
	if found := f.metered.Findings; len(found) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, quietReason(found[0].Rule), quietMessage(found)
		return &c
	}
	switch known := quietKnown(f); {
	case !known.IsZero() && f.now.Before(known):
		return nil
	case known.IsZero() && !quietForged(f, c):
		return nil
	}
	return &c
}

// quietForged reports whether another client, such as the agent itself, wrote what only the hub manager knows.
func quietForged(f facts, ours metav1.Condition) bool {
	have := meta.FindStatusCondition(f.cluster.Status.Conditions, names.ConditionAgentQuiet)
	return have != nil && (have.Status != ours.Status || have.Reason != ours.Reason || have.Message != ours.Message)
}

// quietKnown returns when it is known that what the condition says is over, unless it is found again before; zero when
// the condition says nothing. It may name several findings.
func quietKnown(f facts) time.Time {
	have := meta.FindStatusCondition(f.cluster.Status.Conditions, names.ConditionAgentQuiet)
	if have == nil || have.Status != metav1.ConditionFalse {
		return time.Time{}
	}
	return f.metered.Since.Add(meter.Requests.Limit().Window) // the longest of all
}

// quietWake returns when the condition may change without an event; zero when it cannot.
func quietWake(f facts) time.Time {
	if len(f.metered.Findings) > 0 {
		return f.metered.Next
	}
	if known := quietKnown(f); f.now.Before(known) {
		return known
	}
	return time.Time{}
}

func quietReason(rule meter.Rule) string {
	switch rule {
	case meter.Flips:
		return reasonFlips
	case meter.Requests:
		return reasonRequests
	case meter.Writes:
	}
	return reasonWrites
}

// quietMessage says what was found and what to do.
func quietMessage(found []meter.Finding) string {
	parts, remedy := make([]string, 0, len(found)+1), "look at the credential of that user, which others may hold, too"
	for _, finding := range found {
		parts = append(parts, quietFinding(finding))
		if finding.Thing.Kind != kindUser {
			remedy = "look at the log of the agent, or deny the cluster"
		}
	}
	return strings.Join(append(parts, remedy), "; ")
}

// quietFinding says one thing that was found. It has the limit and not the count, so that the condition is not written
// again and again.
func quietFinding(f meter.Finding) string {
	limit, thing := f.Rule.Limit(), f.Thing
	window, all := duration.HumanDuration(limit.Window), thing == meter.Thing{}
	about := strings.TrimSpace(thing.Kind + " " + thing.Name)
	switch {
	case f.Rule == meter.Flips && all:
		return fmt.Sprintf("conditions of its objects changed their status more than %d times in %s", limit.All, window)
	case f.Rule == meter.Flips:
		return fmt.Sprintf("conditions of %s changed their status more than %d times in %s", about, limit.One, window)
	case f.Rule == meter.Requests && thing.Kind == kindUser:
		return fmt.Sprintf("%s requested more than %d certificates for this cluster in %s", about, limit.One, window)
	case f.Rule == meter.Requests && all:
		return fmt.Sprintf("more than %d certificates were requested in %s", limit.All, window)
	case f.Rule == meter.Requests:
		return fmt.Sprintf("more than %d certificates of %s were requested in %s", limit.One, about, window)
	case all:
		return fmt.Sprintf("its objects were written more than %d times in %s", limit.All, window)
	}
	return fmt.Sprintf("%s was written more than %d times in %s, and its spec did not change", about, limit.One, window)
}
