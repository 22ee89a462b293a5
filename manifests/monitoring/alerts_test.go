package monitoring

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/causes"
)

func TestEachAlertSaysWhatAPersonNeeds(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range Alerts() {
		t.Run(a.Name, func(t *testing.T) {
			assert.False(t, seen[a.Name], "the runbook of an alert has its name")
			seen[a.Name] = true
			assert.True(t, strings.HasPrefix(a.Name, "Spokelet"))
			assert.Contains(t, []Program{Hub, Agent}, a.Program)
			assert.Contains(t, []Severity{Critical, Warning}, a.Severity)
			assert.GreaterOrEqual(t, a.For, 5*time.Minute, "one scrape that fails wakes nobody")
			assert.Equal(t, a.HasThreshold(), a.Unit != "", "a threshold has a unit")
			assert.Equal(t, a.HasThreshold(), strings.Contains(a.Query(), " > "))
			assert.True(t, strings.HasSuffix(a.Summary, "."), "a sentence")
			assert.Contains(t, a.Description, "un: kubectl ", "a command to run")
		})
	}
}

func TestTheCodesInExpressionsAreThoseThatAreMeant(t *testing.T) {
	found := map[string]string{}
	for _, a := range Alerts() {
		found[a.Name] = a.Expr + a.Description
	}
	assert.Contains(t, found["SpokeletClusterSilent"], string(causes.ClusterSilent))
	assert.Contains(t, found["SpokeletAddOnUnavailable"],
		`"well|`+string(causes.ClusterSilent)+"|"+string(causes.DeletionWaits)+`"`)
	assert.Contains(t, found["SpokeletRenderFailing"], string(causes.NotRendered))
}

func TestAllFormsHaveTheSameAlerts(t *testing.T) {
	type rule struct {
		Alert, For, Expr    string
		Labels, Annotations map[string]string
	}
	type groups struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	var file groups
	require.NoError(t, yaml.UnmarshalStrict(Rules(), &file))
	require.Len(t, file.Groups, 2)
	for i, p := range []Program{Hub, Agent} {
		var object struct {
			Spec groups
		}
		require.NoError(t, yaml.Unmarshal(PrometheusRule(p, "x"), &object))
		require.Len(t, object.Spec.Groups, 1)
		assert.Equal(t, file.Groups[i], object.Spec.Groups[0])
		for j, a := range of(p) {
			got := file.Groups[i].Rules[j]
			assert.Equal(t, a.Name, got.Alert)
			assert.Equal(t, a.Query(), got.Expr)
			assert.NotContains(t, got.Expr, placeholder)
			assert.Equal(t, string(a.Severity), got.Labels["severity"])
			assert.Equal(t, a.Description, got.Annotations["description"])
			assert.Equal(t, DefaultRunbooks+"/"+a.Name+".md", got.Annotations["runbook_url"])
			waits, err := time.ParseDuration(got.For)
			require.NoError(t, err)
			assert.Equal(t, a.For, waits)
		}
	}
	var data []struct{ Alert, Expr string }
	require.NoError(t, yaml.Unmarshal(ChartAlerts(), &data))
	assert.Len(t, data, len(Alerts()))
	assert.Equal(t, len(Alerts())+2, strings.Count(strings.TrimSpace(Table()), "\n")+1)
}
