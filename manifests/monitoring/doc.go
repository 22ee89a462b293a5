// Package monitoring has the alerts of Spokelet as data (hub.go, agent.go), and writes them in the forms that ship: a
// rule file of Prometheus, a PrometheusRule for kustomize, and what the chart makes one of (render.go). "make generate"
// writes the files beside this one and those of the chart.
//
// An alert of the hub is about what the hub manager counts, and one of the agent about what agents count, so that each
// can be evaluated where its program is scraped. None of them drops labels that it does not know, such as that of a
// cluster: only those that differ between two pods of a Deployment are taken away where the pods take turns.
package monitoring
