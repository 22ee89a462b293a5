// Package planner decides the rollout of one ClusterManagementAddOn over all its clusters: which of them may have the
// configuration that is wanted now (the target), which wait and why, how far each placement is, and when to look again.
// It is a pure function of values: the reconciler observes a Fleet, calls Make, and acts on the Plan.
//
// A strategy becomes a list of waves:
//
//	All                   one wave of all clusters, without limits
//	Progressive           each mandatory decision group, by index; then one wave of the rest, of which at most
//	                      maxConcurrency move at a time
//	ProgressivePerGroup   each mandatory decision group, by index; then each other decision group, by index
//
// Only the first wave that is not finished admits clusters, and none does while more clusters of any wave have failed
// or timed out than the wave tolerates: none in a mandatory group, maxFailures in another.
//
//	phase       counts as a failure | keeps its slot | its wave waits for it
//	awaited     no  | no  | yes     without the add-on, and will get it
//	overdue     no  | no  | no      likewise, and its former add-on is being deleted for longer than the progressDeadline
//	gone        yes | no  | no      likewise, and its add-on was deleted on its way, which takes longer than that
//	lost        yes | no  | no      likewise, and it failed with the add-on that it had
//	returning   yes | no  | no      pending, and it failed with the add-on that it had: it gets the target again at once,
//	                                whatever failed, and keeps a slot where it does
//	waiting     no  | no  | yes     pending, and may move
//	held        no  | no  | no      pending, and may not move
//	            no  | no  | yes     likewise, because a policy or a window does not let it move now
//	            no  | no  | no      likewise, because it waits for an add-on that this one depends on: see below
//	in flight   no  | yes | yes
//	failing     yes | yes | yes     failed, and the progressDeadline is still ahead
//	failed      yes | no  | no      failed, and there is no deadline to wait for
//	timed out   yes | no  | no      in flight or failed for longer than the progressDeadline
//	soaking     no  | yes | yes     succeeded for less than minSuccessTime
//	done        no  | no  | no
//
// So a wave is finished when every cluster of it is done, failed within what is tolerated, or held. A mandatory group
// of which nothing is done, because all its clusters are held, is not finished: it has proved nothing yet. Nor is a
// wave of which more clusters failed or wait for a dependency than is tolerated.
//
// Order and limits:
//
//   - Clusters that an earlier target left broken or unfinished are admitted first, the others after them, and both by
//     name, whatever the order of the input. Those that have the target already, in flight or
//     soaking, take their slots first and keep them: a newcomer with an earlier name displaces nobody.
//   - A percentage is of the clusters of the wave, rounded up: at least one cluster moves.
//   - Clusters that never get the add-on, because the hub does not accept them for example, and those that another
//     placement owns do not exist here: they would block their group for ever. One that will get it is awaited, so that
//     a group is complete from the first plan on. Indexes of groups may have gaps; a cluster without a group is in a
//     last group of its own kind.
//   - Nothing is remembered from one plan to the next. A cluster that was admitted and whose state does not show that
//     yet has to be given as InFlight, or its slot may be given to another one as well. So has a cluster whose add-on
//     is created again to be given with the time that it takes in all, and with its failure.
package planner
