package lease

import (
	"bytes"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// State is the state of a Lease.
type State string

const (
	// Fresh means that the Lease was renewed within the grace.
	Fresh State = "Fresh"
	// Stale means that the Lease was not renewed within the grace, or never.
	Stale State = "Stale"
	// Missing means that there is no Lease.
	Missing State = "Missing"
)

// Verdict is the result of Judge.
type Verdict struct {
	// State is the state of the Lease.
	State State
	// RenewedAt is the last renewal; zero when there was none.
	RenewedAt time.Time
	// ExpiresAt is the first instant at which the Lease is stale, in the past when it already is; zero when there is no
	// Lease or no renewal. A Fresh Lease must be judged again at this time.
	ExpiresAt time.Time
	// Message explains the state to a person; empty when Fresh.
	Message string
}

// Judge compares the last renewal of l with now. A nil Lease is Missing, one without renewTime is Stale, and at exactly
// renewTime plus grace a Lease is Stale already.
func Judge(l *coordinationv1.Lease, now time.Time, grace time.Duration) Verdict {
	if l == nil {
		return Verdict{State: Missing, Message: "there is no lease"}
	}
	if l.Spec.RenewTime.IsZero() {
		return Verdict{State: Stale, Message: fmt.Sprintf(
			"lease %s/%s has no renewTime: it exists but was never renewed", l.Namespace, l.Name)}
	}
	renewed := l.Spec.RenewTime.Time
	v := Verdict{State: Fresh, RenewedAt: renewed, ExpiresAt: renewed.Add(grace)}
	if !now.Before(v.ExpiresAt) {
		v.State = Stale
		v.Message = fmt.Sprintf("lease %s/%s was last renewed at %s, more than %s ago",
			l.Namespace, l.Name, renewed.UTC().Format(time.RFC3339), grace)
	}
	return v
}

// StoredAt returns the time at which the present renewTime of a Lease was stored, by the clock of the API server; zero
// when the managed fields do not have it.
func StoredAt(l *coordinationv1.Lease) time.Time {
	var stored time.Time
	for _, entry := range l.ManagedFields {
		if entry.Time == nil || entry.FieldsV1 == nil ||
			!bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:renewTime"`)) {
			continue
		}
		if entry.Time.After(stored) {
			stored = entry.Time.Time
		}
	}
	return stored
}
