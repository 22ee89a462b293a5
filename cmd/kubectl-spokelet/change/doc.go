// Package change compares what an add-on deploys on a fleet before and after a change of its template, configuration
// or definition. Everything in it is a pure function of two renderings of the code of the hub manager (hub/render).
// Compare returns the differences of each cluster: clusters with the same ones are one group, removals come first, and
// values of Secrets are masked. Waves plays the rollout with the planner of the hub manager.
package change
