package generated

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spokelet/spokelet/manifests/monitoring"
)

const (
	// monitoringFolder has what ships about alerts and dashboards, and alertsPage describes the alerts.
	monitoringFolder = "manifests/monitoring"
	alertsPage       = "docs/operations/alerts.md"
	// dashboardsHead begins the component with the dashboards.
	dashboardsHead = `# Written by "make generate": a ConfigMap for each dashboard, with the label by which the sidecar of
# Grafana finds it.
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
generatorOptions:
  disableNameSuffixHash: true
  labels:
    grafana_dashboard: "1"
`
)

// monitoringFiles returns the generated files about alerts and dashboards.
func monitoringFiles(root string) (map[string][]byte, error) {
	files := map[string][]byte{
		path.Join(monitoringFolder, "rules.yaml"): monitoring.Rules(),
		path.Join(monitoringFolder, "hub/prometheus-rule.yaml"): monitoring.PrometheusRule(
			monitoring.Hub, "open-cluster-management-hub"),
		path.Join(monitoringFolder, "klusterlet/prometheus-rule.yaml"): monitoring.PrometheusRule(
			monitoring.Agent, "open-cluster-management-agent"),
		path.Join(chartFiles, "alerts.yaml"): monitoring.ChartAlerts(),
	}
	dashboards, err := filepath.Glob(filepath.Join(root, monitoringFolder, "dashboards", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("looking for dashboards: %w", err)
	}
	component := dashboardsHead
	if len(dashboards) > 0 {
		component += "configMapGenerator:\n"
	}
	for _, file := range dashboards {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a dashboard: %w", err)
		}
		name := filepath.Base(file)
		component += fmt.Sprintf("- name: spokelet-dashboard-%s\n  namespace: open-cluster-management-hub\n"+
			"  files:\n  - %s\n", strings.TrimSuffix(name, ".json"), name)
		files[path.Join(chartFiles, "dashboards", name)] = content
	}
	files[path.Join(monitoringFolder, "dashboards/kustomization.yaml")] = []byte(component)
	page, err := pageWith(root, alertsPage, "alerts", monitoring.Table())
	if err != nil {
		return nil, err
	}
	files[alertsPage] = page
	return files, nil
}
