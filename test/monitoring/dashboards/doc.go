// Package dashboards judges the dashboards that we ship, as files, and asks their queries.
//
//   - lint.go, lint_panel.go, lint_query.go: rules like those of Grafana's dashboard-linter, which cannot be had as a
//     module, and ours (docs/adr/0028). A dashboard that breaks one needs an exception with a reason (exceptions.go).
//   - ask.go: what Grafana makes of a query before Prometheus gets it, and the answer of a store of package harness.
//   - picture: draws a dashboard from such answers.
//
// The test of the queries scrapes real programs on real control planes, on a fleet where each kind of trouble happens,
// and wants an answer to each query of each panel, and a value for each variable.
package dashboards
