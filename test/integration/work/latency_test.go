package work_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/agent/work/latency"
)

// output is the standard output of an agent.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// told returns of each line its flow, what it is about and its outcome, since the last call.
func (o *output) told(t *testing.T) []string {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []string
	for raw := range strings.Lines(o.text.String()) {
		var one struct {
			Flow    string `json:"flow"`
			Name    string `json:"applied_name"`
			Outcome string `json:"outcome"`
		}
		require.NoError(t, json.Unmarshal([]byte(raw), &one), raw)
		all = append(all, strings.Join(strings.Fields(one.Flow+" "+one.Name+" "+one.Outcome), " "))
	}
	o.text.Reset()
	return all
}

// TestLinesTellHowLongAWorkTakes applies a work whose second manifest can be applied only later, edits it, and restarts
// the agent.
// Shows: work/latency-lines
func TestLinesTellHowLongAWorkTakes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	out := &output{}
	e.settings.latency = latency.New(out, clock.RealClock{})
	a := e.start()
	e.create(e.unstructuredOf("{apiVersion: v1, kind: ConfigMap, metadata: {name: seen, namespace: %s}}", e.cluster))
	elsewhere := e.unstructuredOf("{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: %s-late}}", e.cluster)
	w := e.work("w", e.configMap("a", nil), elsewhere, e.configMap("seen", nil))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.strategy("seen", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}),
	}
	e.create(w)
	e.is(w, workv1.WorkApplied, "False")
	e.quiet(a)
	lines := out.told(t)
	require.Len(t, lines, 5)
	assert.Equal(t, "mw_spoke_apply", lines[0])
	assert.ElementsMatch(t, []string{
		"mw_resource_spoke_apply a applied", "mw_resource_spoke_apply late failed", "mw_resource_spoke_apply seen read_only",
	}, lines[1:4])
	assert.Equal(t, "mw_spoke_apply_result partial", lines[4])

	e.create(e.unstructuredOf("{apiVersion: v1, kind: Namespace, metadata: {name: %s-late}}", e.cluster))
	e.is(w, workv1.WorkApplied, "True")
	e.quiet(a)
	assert.Equal(t, []string{"mw_resource_spoke_sync late applied"}, out.told(t))

	a.stop()
	e.settings.latency = latency.New(out, clock.RealClock{})
	a = e.start()
	e.edit(w, func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[:1] })
	e.settled(w)
	e.quiet(a)
	assert.Equal(t, []string{
		"mw_spoke_apply", "mw_resource_spoke_apply a applied", "mw_spoke_apply_result applied",
	}, out.told(t), "what was told before the restart is not told again")
}
