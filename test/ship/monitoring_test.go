package ship_test

import (
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spokelet/spokelet/manifests/monitoring"
)

// ofMonitoring is the group of the kinds of the operator of Prometheus.
const ofMonitoring = "monitoring.coreos.com"

// withoutMonitoring returns the objects that a bare API server knows.
func withoutMonitoring(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var rest []*unstructured.Unstructured
	for _, object := range objects {
		if object.GroupVersionKind().Group != ofMonitoring {
			rest = append(rest, object)
		}
	}
	return rest
}

// monitored are the values with which everything about monitoring is on.
func monitored(mode string, rules values) values {
	all := values{"enabled": true}
	for key, value := range rules {
		all[key] = value
	}
	return values{"mode": mode, "monitoring": values{
		"podMonitor": values{"enabled": true, "labels": values{"team": "fleet"}}, "rules": all, "dashboards": values{"enabled": true},
	}}
}

// TestTheOperatorOfPrometheusKnowsAllFields: the types of its API decode what ships strictly.
func TestTheOperatorOfPrometheusKnowsAllFields(t *testing.T) {
	for mode, program := range map[string]monitoring.Program{
		"hub": monitoring.Hub, "klusterlet": monitoring.Agent, "klusterlet-hosted": monitoring.Agent,
	} {
		objects := helmed(t, "elsewhere", monitored(mode, nil))
		monitor := object[monitoringv1.PodMonitor](t, objects, "PodMonitor", string(program))
		assert.Equal(t, "elsewhere", monitor.Namespace)
		assert.Equal(t, map[string]string{"app": string(program), "team": "fleet"}, monitor.Labels)
		deployment := object[appsv1.Deployment](t, objects, "Deployment", string(program))
		pod := deployment.Spec.Template
		for name, value := range monitor.Spec.Selector.MatchLabels {
			assert.Equal(t, value, pod.Labels[name])
		}
		assert.Equal(t, string(program), pod.Labels[monitor.Spec.JobLabel], "the rules and dashboards know this job")
		port := pod.Spec.Containers[0].Ports[len(pod.Spec.Containers[0].Ports)-1]
		assert.Equal(t, port.Name, *monitor.Spec.PodMetricsEndpoints[0].Port)
		assert.Contains(t, pod.Spec.Containers[0].Args, "--metrics-bind-address=:8080")
		network := object[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", string(program)).Spec
		allowed := network.Ingress[len(network.Ingress)-1]
		assert.Equal(t, int(port.ContainerPort), allowed.Ports[0].Port.IntValue(), "the scrape is allowed")
		assert.Empty(t, allowed.From)
		rule := object[monitoringv1.PrometheusRule](t, objects, "PrometheusRule", string(program))
		require.Len(t, rule.Spec.Groups, 1)
		for _, one := range rule.Spec.Groups[0].Rules {
			assert.Equal(t, monitoring.DefaultRunbooks+"/"+one.Alert+".md", one.Annotations["runbook_url"],
				"the default of the chart is that of kustomize")
		}
	}
}

func TestThresholdsOfAlertsAreValues(t *testing.T) {
	objects := helmed(t, hubNamespace, monitored("hub", values{
		"runbooks": "https://wiki.example.com/alerts/",
		"alerts": values{
			"SpokeletClusterSilent":    values{"threshold": 25, "for": "1h", "severity": "page"},
			"SpokeletAddOnUnavailable": values{"threshold": 2.5},
			"SpokeletRolloutStopped":   values{"enabled": false},
		},
	}))
	rules := map[string]monitoringv1.Rule{}
	for _, one := range object[monitoringv1.PrometheusRule](t, objects, "PrometheusRule", "spokelet-hub").Spec.Groups[0].Rules {
		rules[one.Alert] = one
	}
	silent := rules["SpokeletClusterSilent"]
	assert.True(t, strings.HasSuffix(silent.Expr.StrVal, "> 25"), silent.Expr.StrVal)
	assert.Equal(t, monitoringv1.Duration("1h"), *silent.For)
	assert.Equal(t, map[string]string{"severity": "page"}, silent.Labels)
	assert.Equal(t, "https://wiki.example.com/alerts/SpokeletClusterSilent.md", silent.Annotations["runbook_url"])
	assert.True(t, strings.HasSuffix(rules["SpokeletAddOnUnavailable"].Expr.StrVal, "> 2.5"))
	assert.NotContains(t, rules, "SpokeletRolloutStopped")
	assert.Contains(t, rules, "SpokeletRemovalHeld", "the others stay as they are")
}

func TestWhoMayReadMetricsIsAValue(t *testing.T) {
	who := values{"namespaceSelector": values{"matchLabels": values{"kubernetes.io/metadata.name": "monitoring"}}}
	objects := helmed(t, hubNamespace, values{"mode": "hub", "metrics": values{"enabled": true, "from": []any{who}}})
	network := object[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", "spokelet-hub").Spec
	allowed := network.Ingress[len(network.Ingress)-1]
	require.Len(t, allowed.From, 1)
	assert.Equal(t, "monitoring", allowed.From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
	assert.Equal(t, 8080, allowed.Ports[0].Port.IntValue())
}

func TestEachDashboardIsAConfigMapAndNothingOfThisIsOnByDefault(t *testing.T) {
	files, err := filepath.Glob(repository(t, "manifests/monitoring/dashboards/*.json"))
	require.NoError(t, err)
	objects := helmed(t, hubNamespace, monitored("hub", nil))
	for _, file := range files {
		name := filepath.Base(file)
		found := object[corev1.ConfigMap](t, objects, "ConfigMap", "spokelet-dashboard-"+strings.TrimSuffix(name, ".json"))
		assert.Equal(t, string(read(t, "manifests/monitoring/dashboards/"+name)), found.Data[name])
		assert.Equal(t, "1", found.Labels["grafana_dashboard"])
	}
	for _, mode := range []string{"hub", "klusterlet", "klusterlet-hosted"} {
		for _, o := range helmed(t, hubNamespace, values{"mode": mode}) {
			assert.NotEqual(t, ofMonitoring, o.GroupVersionKind().Group)
			assert.NotContains(t, o.GetName(), "dashboard")
		}
	}
	for _, o := range helmed(t, hubNamespace, monitored("klusterlet-managed", nil)) {
		assert.NotEqual(t, ofMonitoring, o.GroupVersionKind().Group, "there is no pod of ours")
	}
}

func TestOnlyAlertsThatExistHaveValues(t *testing.T) {
	for _, a := range monitoring.Alerts() {
		helmed(t, hubNamespace, monitored("hub", values{"alerts": values{a.Name: values{"for": "7m"}}}))
	}
}
