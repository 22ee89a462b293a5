package command

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/internal/version"
)

func TestTheVersionIsLoggedAndInTheMetrics(t *testing.T) {
	var log []string
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { log = append(log, args) }, funcr.Options{}))
	registry := prometheus.NewRegistry()
	require.NoError(t, Agent.Tell(ctx, registry))
	require.NoError(t, HubManager.Tell(ctx, registry))
	require.NoError(t, HubManager.Tell(ctx, registry), "it may run again in the same process")

	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	assert.Equal(t, "spokelet_build_info", families[0].GetName())
	var found []map[string]string
	for _, m := range families[0].GetMetric() {
		assert.InDelta(t, 1, m.GetGauge().GetValue(), 0)
		labels := map[string]string{}
		for _, label := range m.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		found = append(found, labels)
	}
	assert.Equal(t, []map[string]string{
		{"component": "agent", "version": version.String()}, {"component": "hub-manager", "version": version.String()},
	}, found)
	assert.Contains(t, log[0], `"msg"="starting" "component"="agent" "version"="`+version.String()+`"`)

	require.NoError(t, Agent.Tell(t.Context(), nil), "without a registry it is only logged")
}
