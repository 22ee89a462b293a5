package monitoring

import (
	"fmt"
	"strings"
)

// written begins each file.
const written = "# Written by \"make generate\" from manifests/monitoring.\n"

// Rules returns the rule file of Prometheus with all alerts.
func Rules() []byte {
	text := written + "groups:\n"
	for _, p := range []Program{Hub, Agent} {
		text += group(p)
	}
	return []byte(text)
}

// PrometheusRule returns the alerts of a program as an object for the operator of Prometheus, in a namespace.
func PrometheusRule(p Program, namespace string) []byte {
	head := `apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: %[1]s
  namespace: %[2]s
  labels:
    app: %[1]s
spec:
  groups:
`
	return []byte(written + fmt.Sprintf(head, p, namespace) + indent(group(p), "  "))
}

// ChartAlerts returns the alerts as data, of which the chart makes a PrometheusRule.
func ChartAlerts() []byte {
	text := written
	for _, a := range Alerts() {
		text += fmt.Sprintf("- alert: %s\n  program: %s\n  for: %s\n  severity: %s\n",
			a.Name, a.Program, a.duration(), a.Severity)
		if a.HasThreshold() {
			text += fmt.Sprintf("  threshold: %d\n", a.Threshold)
		}
		text += block("  expr", a.Expr) + block("  summary", a.Summary) + block("  description", a.Description)
	}
	return []byte(text)
}

// Table returns a table of the alerts in Markdown, for the page about them.
func Table() string {
	text := "\n| alert | severity | for | fires above | metrics of |\n|---|---|---|---|---|\n"
	for _, a := range Alerts() {
		above := "-"
		if a.HasThreshold() {
			above = fmt.Sprintf("%d %s", a.Threshold, a.Unit)
		}
		program := "hub manager"
		if a.Program == Agent {
			program = "agent"
		}
		text += fmt.Sprintf("| [%[1]s](runbooks/%[1]s.md) | %[2]s | %[3]s | %[4]s | %[5]s |\n",
			a.Name, a.Severity, a.duration(), above, program)
	}
	return text + "\n"
}

// group returns the group of rules of a program.
func group(p Program) string {
	text := fmt.Sprintf("- name: %s\n  rules:\n", p)
	for _, a := range of(p) {
		text += indent(a.rule(), "  ")
	}
	return text
}

// rule returns a rule.
func (a Alert) rule() string {
	return "- alert: " + a.Name + "\n" + block("  expr", a.Query()) + "  for: " + a.duration() + "\n" +
		"  labels:\n    severity: " + string(a.Severity) + "\n" +
		"  annotations:\n" + block("    summary", a.Summary) + block("    description", a.Description) +
		"    runbook_url: " + DefaultRunbooks + "/" + a.Name + ".md\n"
}

// block returns a text as a block of YAML, which needs no quotes.
func block(key, text string) string {
	deeper := strings.Repeat(" ", len(key)-len(strings.TrimLeft(key, " "))+2)
	return key + ": |-\n" + indent(text+"\n", deeper)
}

// indent moves all lines to the right.
func indent(text, by string) string {
	var moved strings.Builder
	for line := range strings.Lines(text) {
		moved.WriteString(by + line)
	}
	return moved.String()
}
