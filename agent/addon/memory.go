package addon

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spokelet/spokelet/csr/issue"
	"github.com/spokelet/spokelet/internal/kept"
	"github.com/spokelet/spokelet/internal/unready"
)

// memory is what a pass leaves for the next one about the same add-on.
type memory struct {
	// unstored has the tokens that could not be stored.
	unstored kept.Map[unstoredKey, credential]
	// issued has when the hub issued the last tokens of each add-on, by name, within issue.RecentWindow by our clock. The
	// hub keeps no record of them. Where the add-on runs does not matter: whatever moves it must not get more of them.
	issued kept.Map[string, []time.Time]
	// inspections has the last inspection of each unhealthy add-on, by name, so that events do not cause more inspections
	// than the pauses allow. It is a cache: without it there is one more inspection.
	inspections kept.Map[string, inspection]
	// workloads has the last inspection of each add-on whose workloads are not ready, by name, as a cache too.
	workloads kept.Map[string, workloadInspection]
}

// unstoredKey names the Secret that a token is for.
type unstoredKey struct {
	side   side
	secret types.NamespacedName
}

// credential is the content of a Secret: a certificate with its key, or a token.
type credential struct {
	pair issue.Pair
	// token is the token; unused for a registration that gets a certificate.
	token []byte
	// issuedAt is the time at which the agent got the token, by the clock of the hub as far as the agent knew it; zero
	// when it is unknown.
	issuedAt time.Time
}

// inspection is one inspection of an add-on.
type inspection struct {
	place    place
	snapshot snapshot
	// pause is the time from at to the next inspection.
	at    time.Time
	pause time.Duration
	// turn is the time of the next inspection if it is due and waits for others; zero otherwise.
	turn time.Time
}

// due is the time of the next inspection.
func (i inspection) due() time.Time {
	if !i.turn.IsZero() {
		return i.turn
	}
	return i.at.Add(i.pause)
}

// workloadInspection is one inspection of the workloads of an add-on.
type workloadInspection struct {
	// about is the time since which the hub reports them as not ready.
	about time.Time
	// targets are the workloads in the ManifestWorks of the add-on; nil when they must be read.
	targets []unready.Target
	// text explains why they are not ready; empty when the cause is unknown, nil before the first inspection.
	text *string
	// pause is the time from at to the next inspection.
	at    time.Time
	pause time.Duration
}

// due is the time of the next inspection.
func (l workloadInspection) due() time.Time { return l.at.Add(l.pause) }
