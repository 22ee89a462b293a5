package join

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/csr/issue"
)

// pass has the facts of one pass.
type pass struct {
	r     *Reconciler
	facts Facts
	// ahead is the time by which the clock of the agent is ahead of that of the hub. All times of a pass are by the clock
	// of the hub.
	ahead time.Duration
}

func (r *Reconciler) begin() *pass {
	ahead := r.Ahead()
	return &pass{r: r, ahead: ahead, facts: Facts{
		Server: r.Server, Identity: r.Identity, Refused: r.Refused, Now: r.Clock.Now().Add(-ahead),
	}}
}

// task returns the task of the issuer.
func (p *pass) task() issue.Task {
	return issue.Task{Now: p.facts.Now, Want: p.r.request(), Load: p.load}
}

// load reads the credential Secret and keeps it for the rest of the pass.
func (p *pass) load(ctx context.Context, live bool) (issue.Pair, bool, error) {
	reader := client.Reader(p.r.Agent.GetClient())
	if live {
		reader = p.r.Agent.GetAPIReader()
	}
	secret, err := readSecret(ctx, reader, p.r.key())
	if err != nil {
		return issue.Pair{}, false, err
	}
	p.facts.take(secret)
	_, changed := hubChanged(p.facts.Server, p.facts.Data)
	return p.facts.Pair, changed || p.facts.refused(), nil
}
