package virtual

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/spokelet/spokelet/internal/names"
)

const (
	// forgiven is how long what an agent did too often may be held against it: the hub manager counts for an hour.
	forgiven = 2 * time.Hour

	// quietSpans are looked at, of quietFor each.
	quietSpans, quietFor = 12, 5 * time.Minute
	// quietSpan counts those in which nothing happened.
	quietSpan = "quiet spans"
)

// beQuiet waits until a fleet has recovered, and then looks for writes on links in times in which nothing happens.
func (w *World) beQuiet(links []*link) {
	time.Sleep(recovered)
	for end := time.Now().Add(forgiven); ; time.Sleep(quietFor) {
		said, err := w.loud()
		if err == nil && said == "" {
			break
		}
		if err != nil || time.Now().After(end) {
			w.judge.violated("quiet: %s after nothing happened for %s (%v)", said, forgiven, err)
			return
		}
	}
	for range quietSpans {
		w.lookFor(links)
	}
	if w.judge.counted()[quietSpan] == 0 {
		w.judge.violated("quiet: certificates were renewed all the time")
	}
}

// loud returns what the hub says of an agent that writes or requests too often, which ends by time alone; empty when it
// says that of none.
func (w *World) loud() (string, error) {
	var clusters clusterv1.ManagedClusterList
	if err := w.admin.List(w.ctx, &clusters); err != nil {
		return "", fmt.Errorf("listing clusters: %w", err)
	}
	for _, c := range clusters.Items {
		if meta.IsStatusConditionFalse(c.Status.Conditions, names.ConditionAgentQuiet) {
			said := meta.FindStatusCondition(c.Status.Conditions, names.ConditionAgentQuiet)
			return c.Name + ": " + said.Message, nil
		}
	}
	return "", nil
}

// lookFor looks for writes in one such time.
func (w *World) lookFor(links []*link) {
	certificates := w.judge.counted()[certificate]
	before := make([]map[string]int, len(links))
	for i, l := range links {
		before[i] = l.written()
	}
	time.Sleep(quietFor)
	if w.judge.counted()[certificate] > certificates {
		return // one that is renewed costs writes
	}
	w.judge.count(quietSpan)
	for i, l := range links {
		if more := l.more(before[i]); len(more) > 0 {
			w.judge.violated("quiet: %s wrote in %s in which nothing happened: %v", l.name, quietFor, l.saying(more))
		}
	}
}
