// Package configure decides the configuration of each add-on on each cluster, and the progress of its works.
//
// It has no controller of its own: the reconciler of add-ons (hub/deploy) asks Configurer.Configure in each pass,
// renders from the Choice, and lets the Configuration record itself into the one status that the pass writes. So an
// add-on is configured, deployed and reported with one write.
//
//	spec of the add-on  >  configs of the owning placement  >  defaults         (per kind, the higher replaces all)
//	                               |
//	           target: configurations with hashes (package addonconfig)
//	                               |
//	     in doubt who owns it (hub/fleet)? the add-on keeps what it has, Configured names the cause
//	     missing, unknown, not stored?  the add-on keeps what it has, Configured=False names the cause
//	     admitted by the rollout?       no: it keeps what it has, Configured=False names the cause
//	                               |
//	     the contents of the target are stored, then it becomes desired (status.configReferences, Configured=True)
//	                               |
//	     works carry the hashes and are Applied and Available  -->  Completed, lastAppliedConfig := desiredConfig
//
// Rendering uses the content that is desired, as it was stored, and not the present one: an edit in place reaches each
// cluster when the rollout does, and a cluster that waits is still repaired. Configurations of the spec of one add-on
// concern one cluster, are not part of a rollout, and apply at once.
//
// The status of an add-on may be written by its agent. It decides nothing but which of the stored contents of this
// add-on the cluster keeps while it is not admitted to another.
package configure
