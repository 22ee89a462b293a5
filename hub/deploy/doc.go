// Package deploy brings the agents of add-ons to their clusters and reports their health. It is the one reconciler of a
// ManagedClusterAddOn whose agent this hub manages:
//
//   - observe.go first reads the cluster and which roles must go, so that nothing else keeps them. Then it asks the
//     addon.Agent, once, what the add-on needs on this cluster, and reads its ManifestWorks and RoleBindings.
//   - decide.go is the plan of a pass, and merges the wanted registrations with the driver that the agent has chosen.
//   - decide_bindings.go plans the RoleBindings that grant the agent its roles on the hub, each for one cluster. They
//     go when the hub does not accept the cluster, or the add-on goes. former.go drops those for all clusters, of
//     earlier versions and of OCM, after the last agent has its own.
//   - package hosting decides whether the hosting cluster hosts the add-on, and which works on other clusters count.
//   - decide_works.go plans the works of both sides, the managed and the hosting cluster, with package works, and the
//     finalizers that the add-on needs before they are written.
//   - act.go runs the planned steps; one failure stops nothing else. memory.go is what a pass leaves for the next.
//   - status.go and status_health.go conclude the conditions, from all works of a side and not from the
//     last one.
//
// Nothing is written for a cluster that the hub does not accept, and nothing deleted from it: facts.accepted. While the
// cluster is being deleted, its hooks run all the same if it was accepted once, and are skipped otherwise.
//
// The unknown deletes nothing: if the agent has no answer, works and RoleBindings stay, and the conditions explain why.
// When the add-on is deleted, Kubernetes deletes the objects that it owns.
//
// An add-on with pre-delete hooks or with works on a hosting cluster has finalizers, ours or those of an earlier
// manager of OCM, which are the same. When it is deleted, the work that they guard is done first (decide_deletion.go):
// hooks complete on both sides (decide_hook.go), then works on hosting clusters are deleted. The finalizers of add-ons
// that are not made of templates belong to the managers of their authors and are never touched; the add-on names them
// in a condition.
//
// A work is ours if its name says so and the add-on owns it or, in the namespace of a hosting cluster that the add-on
// records, its labels name the add-on; any other work is left alone. The subjects of roles are computed on the hub, and
// never read from a status that an agent may write.
package deploy
