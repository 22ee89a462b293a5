// Package webhook converts ClusterManagementAddOns and ManagedClusterAddOns between v1alpha1, in which they are stored,
// and v1beta1, for everybody who asks the API server for v1beta1. Spokelet itself does not need it: hub and agent read
// and write the stored version and convert in process (package internal/addonapi), with the very functions served here.
//
//	API server --ConversionReview--> Handler --> Convert (pure) --> addonapi
//
// A review is answered whole or refused whole, and a refusal names every object that could not be converted and why.
// An object with a field that we do not know is refused rather than converted without it: it loses nothing.
//
// The server runs in every replica of the hub manager, not only in the leader.
package webhook
