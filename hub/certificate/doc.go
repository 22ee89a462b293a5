// Package certificate provides the serving certificate of the webhook of the hub manager, and its certificate authority
// for the API server.
//
// Administrators may provide both as files, for example from cert-manager. Otherwise the hub manager creates both and
// stores them in one Secret of its namespace, which all replicas share:
//
//	Secret --> Decide (pure) --> issue --> Secret, guarded by its resourceVersion --> Source
//
// A serving certificate is renewed after two thirds of its life. The authority is renewed long before its end: the new
// one is first trusted beside the old one, and signs the next serving certificate. So the API server never meets a
// certificate that it does not trust.
package certificate
