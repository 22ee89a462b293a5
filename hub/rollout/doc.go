// Package rollout decides which configuration every add-on is to have, tells when it has it, and counts.
//
// Two controllers, both keyed by what they write, each with one status write per pass:
//
//	hub.rollout.addon   ManagedClusterAddOn       which configs with which content (status.configReferences), whether
//	                                              they could be determined (Configured), and how far their works are
//	                                              (Progressing, lastAppliedConfig)
//	hub.rollout         ClusterManagementAddOn    the configs of the defaults and of every placement, and per placement
//	                                              how many clusters have them (installProgressions, Progressing),
//	                                              how many are stuck, and why the first is
//
// The configuration of one add-on depends on few objects: its own spec, its ClusterManagementAddOn, the placement that
// owns its cluster, and the configs. So it is decided add-on by add-on and a rollout costs the same per cluster however
// many there are; the counters follow a moment later, many changes in one pass.
//
//	spec of the add-on  >  configs of the owning placement  >  defaults         (per resource, the higher replaces all)
//	                               |
//	                 missing? keep what is there, Configured=False says what is missing
//	                 hash known? desiredConfig, Configured=True  -->  hub.deploy renders  -->  works carry the hashes
//	                               |
//	       works have the same hashes and are Applied and Available  -->  Completed, lastAppliedConfig := desiredConfig
//
// AddOnTemplates and AddOnDeploymentConfigs are read here. The hashes of all other kinds come from the add-on's own
// manager, which writes them into the same status fields; until it has, Configured=False says who is waited for.
//
// The strategy All is implemented. With any other, an add-on keeps the configuration that it has and Configured=False
// says so: nothing is ever rolled out faster than was asked for.
package rollout
