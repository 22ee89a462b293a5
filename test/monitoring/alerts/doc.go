// Package alerts tests the alerts that manifests/monitoring ships. It has no code but tests.
//
// A fleet of real programs on real control planes is scraped, and Prometheus' own engine evaluates the rules, see
// package harness. Each fault is done to the fleet (faults_hub_test.go, faults_agent_test.go): its alerts must go
// pending, and fire when they waited, no other alert may fire, and all must be silent on the healthy fleet before it
// and after it (play_test.go). The page docs/operations/alerts.md has the outcome: "go test ./alerts -update" writes
// it.
//
// The rules themselves are linted (lint_test.go): each metric and label in them is one of docs/reference/metrics.md,
// or of those of client-go and controller-runtime that the programs were seen to serve.
package alerts
