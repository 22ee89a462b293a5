// Package webhook answers the API server, in two matters that a policy cannot judge.
//
// It converts ClusterManagementAddOns and ManagedClusterAddOns between v1alpha1, in which they are stored, and
// v1beta1, and AddOnTemplates where a hub serves them in both, for everybody who asks the API server for v1beta1.
// Spokelet itself does not need it: hub and agent read and write the stored version and convert in process (package
// internal/addonapi), with the very functions served here.
//
//	API server --ConversionReview--> Handler --> Convert (pure) --> addonapi
//
// A review is answered whole or refused whole. A field that we do not know, of a newer definition, or one whose value
// has another type than we know, loses nothing and fails nothing: one of the spec waits in an annotation until the
// object is converted back, and one of the status keeps its place. Refused is only what no API server sends, and the
// refusal names every such object and the cause.
//
// And it checks the manifests of ManifestWorks when their spec is written (docs/reference/work.md, "Admission of
// works"): that there are some, that each can be decoded and has a kind and a name, that none stands twice, and that
// all together are not too large.
//
//	API server --AdmissionReview--> Works --> wrongManifests (pure) --> yes, or everything that is wrong
//
// The schema of ManifestWorks prunes nothing inside a manifest and tells nothing about it, and a policy can neither
// count its bytes nor look for duplicates among hundreds of manifests within the cost that the API server allows.
// Nobody gets more than was given when this webhook is away: a work that no agent can apply is told in its status
// instead.
//
// Who may accept a cluster, move it, or choose an executor is not asked here. The policies in manifests/hub/policies do
// that, inside the API server, so that it holds without a certificate and without a running hub manager
// (docs/adr/0014-policies.md).
//
// As nothing can be written that the webhook must see while it is away, it asks to see as little as possible:
// MatchConditions leave out the hub manager itself, the status, and every change of something else.
//
// The server runs in every replica of the hub manager, not only in the leader.
package webhook
