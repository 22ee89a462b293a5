// Package webhook answers the API server, in three matters.
//
// It converts ClusterManagementAddOns and ManagedClusterAddOns between v1alpha1, in which they are stored, and v1beta1,
// for everybody who asks the API server for v1beta1. Spokelet itself does not need it: hub and agent read and write the
// stored version and convert in process (package internal/addonapi), with the very functions served here.
//
//	API server --ConversionReview--> Handler --> Convert (pure) --> addonapi
//
// A review is answered whole or refused whole, and a refusal names every object that could not be converted and why.
// An object with a field that we do not know is refused rather than converted without it: it loses nothing.
//
// And it completes and checks ManagedClusters when they are written (contract, registration 4.5). A cluster in no set
// joins the one named "default", and a taint is stamped with the time at which it was added. A cluster whose name can
// never work is refused at once, with all else that is wrong. To accept a cluster and to put it into a set takes rights
// of their own, which are asked of the API server in the name of whoever writes.
//
//	API server --AdmissionReview--> Admission --> completion (pure) --> patch
//	                                          --> check (pure) --> access reviews --> yes, or everything that is wrong
//
// And it checks ManifestWorks when their spec is written (contract, work 5.2): that an agent can apply them at all, and
// that the author may have them applied as the executor that they name.
//
// As nothing can be written that the webhook must see while it is away, it asks to see as little as possible: Rules and
// MatchConditions leave out the hub manager itself, the status, and every change of something else.
//
// The server runs in every replica of the hub manager, not only in the leader.
package webhook
