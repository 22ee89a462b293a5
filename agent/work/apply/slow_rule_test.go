package apply

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/feedback"
	"github.com/spokelet/spokelet/agent/work/inventory"
	"github.com/spokelet/spokelet/agent/work/manifest"
	"github.com/spokelet/spokelet/agent/work/watch"
)

// stalled is a number that is compared slowly, as all is while the node is busy or the agent is throttled.
type stalled struct {
	types.Int

	stall *time.Duration
}

func (s stalled) Equal(other ref.Val) ref.Val { time.Sleep(*s.stall); return s.Int.Equal(other) }

// The node stalls for two seconds while the agent evaluates a rule of a Job that is done, and that never changes again.
// The next passes have time.
func TestARuleThatRanWhileTheNodeStalledIsEvaluatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stall := 2 * time.Second
		live := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "x", "uid": "u", "resourceVersion": "7"},
			"status": map[string]any{"done": stalled{types.Int(1), &stall}},
		}}
		step := &Step{Manifest: &manifest.Manifest{Reads: manifest.Digest{1}}}
		step.Manifest.Options.Rules = []workv1.ConditionRule{{
			Condition: workv1.ManifestComplete, Type: workv1.CelConditionExpressionsType,
			CelExpressions: []string{"object.status.done == 1"},
		}}
		applier := &Applier{Feedback: feedback.New(false, 0)}
		pass := func() (metav1.Condition, Result) {
			r := &run{Applier: applier, Pass: Pass{Owner: inventory.OwnerReference("w", "mine"), Now: epoch}, step: step}
			object := watch.ObjectOf(live)
			f := r.evaluate(t.Context(), live, &object)
			step.Known.State = watch.State{Object: object, Feedback: f, Requested: epoch}
			return f.Conditions[0], of(&step.Known.State, watch.Unchanged, false, r.id())
		}
		first, result := pass()
		assert.Equal(t, "the expression runs longer than 1s", first.Message)
		assert.WithinRange(t, result.Wake, epoch.Add(time.Second), epoch.Add(10*time.Minute), "nothing else leads to the next pass")
		stall = 0
		next, result := pass()
		assert.Equal(t, metav1.ConditionTrue, next.Status, "the work would wait for a Job that is done, until the agent starts again")
		assert.Zero(t, result.Wake)
	})
}
