package work_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/test/suite"
)

// passes is how often the agent has looked at a work.
func (e *env) passes() uint64 {
	e.Helper()
	families, err := e.settings.metrics.Gather()
	require.NoError(e, err)
	var n uint64
	for _, family := range families {
		if family.GetName() == "spokelet_work_pass_seconds" {
			for _, metric := range family.GetMetric() {
				n += metric.GetHistogram().GetSampleCount()
			}
		}
	}
	return n
}

// TestAManifestThatThawsWhileTheHubIsSilentWaitsForTheHub lets a complete manifest become incomplete while the hub
// never answers when it is given the status: the manifest is applied when the hub has taken that, and nobody asks until
// then.
func TestAManifestThatThawsWhileTheHubIsSilentWaitsForTheHub(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	var silent atomic.Bool
	var asked atomic.Int32
	e.settings.metrics = prometheus.NewRegistry()
	e.settings.hubFault = func(req *http.Request) error {
		if silent.Load() && req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/status") &&
			asked.Add(1) == 1 {
			<-req.Context().Done()
			return req.Context().Err()
		}
		return nil
	}
	a := e.start()
	w := e.work("w", e.configMap("a", map[string]string{"k": "v"}))
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		e.rules("", "configmaps", "a", celRule(workv1.ManifestComplete, "object.data.k == 'v'")),
	}
	e.create(w)
	e.is(w, workv1.WorkComplete, metav1.ConditionTrue)
	e.quiet(a)

	silent.Store(true)
	e.setData("a", map[string]string{"k": "open"})
	e.eventually("the hub is given the status", func() bool { return asked.Load() == 1 })
	before := e.passes()
	suite.Within(t, 2*suite.Timeout, suite.True("it is applied when the hub answers", func() bool { return e.dataNow("a") == "v" }))
	const few = 20
	assert.Less(t, e.passes()-before, uint64(few), "nothing is looked at while the hub is waited for")
	e.is(w, workv1.WorkComplete, metav1.ConditionTrue)
}

// dataNow holds what a ConfigMap says.
func (e *env) dataNow(name string) string {
	var cm corev1.ConfigMap
	e.get(&cm, e.cluster, name)
	return cm.Data["k"]
}
