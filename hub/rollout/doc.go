// Package rollout decides the desired configuration of every add-on, and reports the progress of each and of all.
//
// Two controllers, both keyed by what they write, each with one status write per pass:
//
//	hub.rollout.addon   ManagedClusterAddOn       the desired configs with their hashes (status.configReferences), if
//	                                              they can be determined (Configured), and the progress of their works
//	                                              (Progressing, lastAppliedConfig)
//	hub.rollout         ClusterManagementAddOn    the configs of the defaults and of every placement, and per placement
//	                                              the number of clusters that have them (installProgressions,
//	                                              Progressing) or are stuck, with the cause of the first
//
// The configuration of one add-on depends on few objects: its own spec, its ClusterManagementAddOn, the placement that
// owns its cluster, and the configs. So it is decided for each add-on alone, and a rollout costs the same per cluster
// on any fleet; the counters follow a moment later, many changes in one pass.
//
//	spec of the add-on  >  configs of the owning placement  >  defaults         (per resource, the higher replaces all)
//	                               |
//	                 missing? keep the present ones, Configured=False names the missing
//	                 hash known? desiredConfig, Configured=True  -->  hub.deploy renders  -->  works carry the hashes
//	                               |
//	       works have the same hashes and are Applied and Available  -->  Completed, lastAppliedConfig := desiredConfig
//
// AddOnTemplates and AddOnDeploymentConfigs are read here. The hashes of all other kinds come from the add-on's own
// manager, which writes them into the same status fields; until then, Configured=False names the manager.
//
// The strategy All is implemented. With any other, an add-on keeps its configuration and Configured=False explains
// that: nothing is rolled out faster than its author wants.
package rollout
