package latency

import (
	"encoding/json"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/internal/kept"
)

// The flows: the first pass over a generation begins, a resource had its first outcome in it, the pass is over, and the
// outcome of a resource changed in a later one.
const (
	flowBegin, flowResource      = "mw_spoke_apply", "mw_resource_spoke_apply"
	flowEnd, flowResourceChanged = "mw_spoke_apply_result", "mw_resource_spoke_sync"
)

// The outcomes. A resource that is only read is neither applied nor failed; a work is applied in part when some failed.
const (
	outcomeApplied, outcomeFailed    = "applied", "failed"
	outcomeReadOnly, outcomeSomeFail = "read_only", "partial"
)

// timeFormat is RFC 3339 with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// Log writes the lines. Use New.
type Log struct {
	clock clock.PassiveClock

	mu  sync.Mutex
	out io.Writer

	known kept.Map[types.NamespacedName, known]
}

// known holds the outcomes that this process has written of a work.
type known struct {
	uid        types.UID
	generation int64
	// outcomes are those of the manifests, by their index.
	outcomes map[int]string
}

// New returns a Log that writes to out.
func New(out io.Writer, now clock.PassiveClock) *Log {
	return &Log{clock: now, out: out}
}

// Pass is one pass over a work.
type Pass struct {
	log   *Log
	work  *workv1.ManifestWork
	first bool

	mu                        sync.Mutex
	applied, failed, readOnly int
}

// Begin notes that a pass begins to apply a work, and tells the first one over a generation: neither this process nor,
// by the status of the work, one before it has applied that.
func (l *Log) Begin(work *workv1.ManifestWork) *Pass {
	if l == nil {
		return nil
	}
	p := &Pass{log: l, work: work}
	l.known.Change(keyOf(work), func(before known) (known, bool) {
		if before.outcomes != nil && before.uid == work.UID && before.generation == work.Generation {
			return before, true
		}
		said := meta.FindStatusCondition(work.Status.Conditions, workv1.WorkApplied)
		p.first = said == nil || said.ObservedGeneration != work.Generation
		return known{uid: work.UID, generation: work.Generation, outcomes: map[int]string{}}, true
	})
	if p.first {
		count := len(work.Spec.Workload.Manifests)
		l.write(line{Flow: flowBegin, ResourceCount: &count}, work)
	}
	return p
}

// Forget forgets a work that is gone.
func (l *Log) Forget(namespace, name string) {
	if l == nil {
		return
	}
	l.known.Forget(types.NamespacedName{Namespace: namespace, Name: name})
}

// Resource is the outcome of one manifest of a work.
type Resource struct {
	Manifest *manifest.Manifest
	// Err is why it is not applied; nil when it is.
	Err error
	// Version is the resource version of the object, as far as it is known.
	Version string
}

// Resource notes what became of the manifest with an index, and tells it in the first pass over a generation, and when
// that changed.
func (p *Pass) Resource(i int, r Resource) {
	if p == nil {
		return
	}
	outcome := outcomeApplied
	switch {
	case r.Manifest.Options.Strategy.Type == workv1.UpdateStrategyTypeReadOnly:
		outcome = outcomeReadOnly
	case r.Err != nil:
		outcome = outcomeFailed
	}
	p.count(outcome)
	before := p.log.learn(p.work, i, outcome)
	if before == "" && !p.first {
		before = reported(p.work, i)
	}
	one := line{Flow: flowResource, Outcome: outcome, resource: &resource{
		Kind: r.Manifest.GVK.Kind, Name: r.Manifest.Name, Namespace: r.Manifest.Namespace,
	}}
	if r.Err == nil {
		one.Version = r.Version
	}
	if !p.first {
		if outcome == outcomeReadOnly || before == "" || before == outcome {
			return
		}
		one.Flow, one.Before = flowResourceChanged, before
	}
	p.log.write(one, p.work)
}

// count counts an outcome.
func (p *Pass) count(outcome string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch outcome {
	case outcomeApplied:
		p.applied++
	case outcomeFailed:
		p.failed++
	case outcomeReadOnly:
		p.readOnly++
	}
}

// End tells the outcome of the first pass over a generation.
func (p *Pass) End() {
	if p == nil || !p.first {
		return
	}
	count := len(p.work.Spec.Workload.Manifests)
	outcome := outcomeSomeFail
	switch {
	case p.applied == 0 && p.failed == 0:
		outcome = outcomeReadOnly
	case p.failed == 0:
		outcome = outcomeApplied
	case p.applied == 0:
		outcome = outcomeFailed
	}
	p.log.write(line{
		Flow: flowEnd, Outcome: outcome, ResourceCount: &count,
		counts: &counts{Applied: p.applied, Failed: p.failed, ReadOnly: p.readOnly},
	}, p.work)
}

// learn remembers the outcome of a resource, and returns the one of before; empty when this process knows none.
func (l *Log) learn(work *workv1.ManifestWork, i int, outcome string) (before string) {
	l.known.Change(keyOf(work), func(of known) (known, bool) {
		if of.outcomes == nil {
			return of, false
		}
		before, of.outcomes[i] = of.outcomes[i], outcome
		return of, true
	})
	return before
}

// reported returns the outcome of the manifest with an index by the status of a work, as a process of before left it.
func reported(work *workv1.ManifestWork, i int) string {
	for _, one := range work.Status.ResourceStatus.Manifests {
		if int(one.ResourceMeta.Ordinal) != i {
			continue
		}
		said := meta.FindStatusCondition(one.Conditions, workv1.ManifestApplied)
		switch {
		case said == nil:
		case said.Status == metav1.ConditionTrue:
			return outcomeApplied
		default:
			return outcomeFailed
		}
	}
	return ""
}

func keyOf(work *workv1.ManifestWork) types.NamespacedName {
	return types.NamespacedName{Namespace: work.Namespace, Name: work.Name}
}

// line is one line. What a flow does not have is left out.
type line struct {
	Flow       string `json:"flow"`
	Name       string `json:"mw_name"`
	Namespace  string `json:"mw_namespace"`
	Generation int64  `json:"generation"`
	*resource
	ResourceCount *int `json:"resource_count,omitempty"`
	*counts
	Time    string            `json:"ts_utc"`
	Epoch   int64             `json:"ts_epoch_ms"`
	Outcome string            `json:"outcome,omitempty"`
	Before  string            `json:"prev_outcome,omitempty"`
	Labels  map[string]string `json:"labels"`
}

// resource is the part of a line about one resource, and counts that about the outcome of all.
type (
	resource struct {
		Kind      string `json:"applied_kind"`
		Name      string `json:"applied_name"`
		Namespace string `json:"applied_namespace"`
		Version   string `json:"applied_resource_version"`
	}
	counts struct {
		Applied  int `json:"applied_count"`
		Failed   int `json:"failed_count"`
		ReadOnly int `json:"read_only_count"`
	}
)

// write writes a line about a work. A pipe without a reader loses lines; works are applied all the same.
func (l *Log) write(one line, work *workv1.ManifestWork) {
	now := l.clock.Now().UTC()
	one.Name, one.Namespace, one.Generation, one.Labels = work.Name, work.Namespace, work.Generation, work.Labels
	one.Time, one.Epoch = now.Format(timeFormat), now.UnixMilli()
	raw, err := json.Marshal(one)
	if err != nil {
		return // strings and numbers can be encoded
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.out.Write(append(raw, '\n'))
}
