// Package rollout plans the rollout of each ClusterManagementAddOn over all its clusters, and reports how far it is.
//
// One controller, hub.rollout, keyed by ClusterManagementAddOn. A pass observes the fleet (placements, decision groups
// and what the add-ons report), lets package planner decide, and
//
//   - remembers for each cluster whether it may have its target (Admission); a cluster is asked about when it is
//     configured, and exactly those whose answer changed are woken;
//   - writes status.defaultConfigReferences and status.installProgressions, with the counts of each placement, what
//     stops its rollout, and which clusters are stuck and why;
//   - deletes stored contents of configurations that nothing refers to any more.
//
// Changes of many add-ons make one pass: requests wait for batchPeriod, and only add-ons that changed since the last
// pass are converted. What survives a restart is in the cluster: the configuration of every add-on
// (status.configReferences), when its present phase began (the transition time of Progressing), and the contents.
// Admissions are computed again; a cluster that was admitted has its new configuration recorded in its status. How long
// a cluster takes whose add-on is created again (way) is known to this process alone.
//
// An add-on counts as failed when it was not available from the time of its new configuration on, or fell within the
// time that it must be well; what happens to it later does not stop the rollout to other clusters.
package rollout
