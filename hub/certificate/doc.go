// Package certificate holds the serving certificate of the webhook of the hub manager, and the certificate authority
// that the API server is to trust for it.
//
// Administrators may give both as files, as cert-manager writes them. Where they give none, the hub manager makes both
// itself and keeps them in one Secret of its own namespace, which all replicas share:
//
//	Secret --> Decide (pure) --> issue --> Secret, guarded by its resourceVersion --> Source
//
// A serving certificate is renewed after two thirds of its life. The authority is renewed long before it ends: the new
// one is trusted beside the old one first, and signs the serving certificate that is due next. So there is no instant
// at which the API server meets a certificate that it was not told to trust.
package certificate
