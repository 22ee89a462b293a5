// Package deploy brings the agents of add-ons to their clusters and reports how they do. It is the one reconciler of a
// ManagedClusterAddOn whose agent this hub manages, and it does in one pass what depends on the add-on alone:
//
//   - observe.go asks the addon.Agent what the add-on needs on this cluster, once, and reads the ManifestWorks and
//     RoleBindings that are there.
//   - registrations.go merges the wanted registrations with what the agent may say about them: the driver it uses.
//   - bindings.go plans the RoleBindings that give the agent its roles on the hub.
//   - works.go shares the objects out to ManifestWorks that stay below the size limit. An object stays in the work that
//     it is in; a new work takes the first number that is free. spec.go says what a work looks like, and changes of
//     others to our works are undone.
//   - act.go does what was planned; one failure stops nothing else.
//   - hosting.go judges the cluster that the add-on names as its host.
//   - status.go and health.go conclude the conditions RegistrationApplied, ManifestApplied and, where the hub is to
//     look at the workloads, Available, from all works and not from the last one.
//
// What cannot be known deletes nothing: where the agent has no answer, works and RoleBindings stay as they are, and the
// conditions say why. When the add-on goes, Kubernetes removes what it owns.
//
// An add-on that an add-on manager of OCM looked after before may have finalizers. When it is deleted, what they guard
// is done first (decide_leave.go): a pre-delete hook runs to its end (hook.go), and what is left on hosting clusters is
// removed. The finalizers of add-ons that are not made of templates belong to the managers of their authors and are
// never touched; the add-on says whom it waits for.
//
// A work is ours if its name says so and the add-on owns it; any other work is left alone, labels or not. Who gets a
// role is computed on the hub and never read from a status that an agent may write.
package deploy
