package bootstrap

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/pause"
)

// firstLook and lastLook are the pauses between two looks of a Return.
const firstLook, lastLook = 5 * time.Second, time.Minute

// Return ends the phase in which a hub is joined, when the cluster is accepted at one that comes before it: that one
// was away when the hub was selected. The hub being joined answers, perhaps without ever accepting the cluster, so
// nothing else would have the others looked at again. It is a Runnable of the manager of the phase.
type Return struct {
	// Selector selected the hub.
	Selector *Selector
	// Candidates are those it selected from, Stored is the hub of the stored credential; nil if there is none.
	Candidates []Candidate
	Stored     *issue.HubServer
	// Joining is the hub that is joined, Cluster the name of the cluster.
	Joining issue.HubServer
	Cluster string
	// Clock measures the pauses.
	Clock clock.Clock
	// End ends the phase; it must not block.
	End func(reason string)
}

// Start implements manager.Runnable.
func (r *Return) Start(ctx context.Context) error {
	before := r.before()
	if len(before) == 0 {
		return nil
	}
	looks := pause.Growing{First: firstLook, Last: lastLook}
	for wait := firstLook; ; wait = looks.Next(wait) {
		timer := r.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
		for _, one := range before {
			if r.accepted(ctx, one.Target) {
				r.End("hub " + one.Server.Server + ", which has accepted the cluster, can be joined again")
				return nil
			}
		}
	}
}

// before returns the candidates that are selected before the hub that is joined if they can be joined.
func (r *Return) before() []Candidate {
	var before []Candidate
	for _, at := range order(r.Candidates, r.Stored) {
		switch one := r.Candidates[at]; {
		case one.Problem != nil:
		case one.Server.Server == r.Joining.Server:
			return before
		default:
			before = append(before, one)
		}
	}
	return before
}

// accepted reports whether a hub can be joined and has accepted the cluster. One that does not know the cluster would
// have to accept it first, as the one that is joined.
func (r *Return) accepted(ctx context.Context, target Target) bool {
	own, err := r.Selector.check(ctx, target, r.Cluster)
	if err != nil {
		log.FromContext(ctx).V(1).Info("a hub that comes first still cannot be joined", "hub", target.Server.Server,
			"reason", err.Error())
	}
	return err == nil && own != nil && own.DeletionTimestamp.IsZero()
}
