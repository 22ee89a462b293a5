// Package approval approves the certificate requests of clusters and of add-ons, and signs those of the custom signer
// of an add-on. It is the door of the hub: a user who gets through holds a credential, and no credential is ever
// revoked.
//
// The labels of a request say whose it claims to be; anybody may write them. So a request is never judged by what it
// says, but by being exactly what the hub would have written itself (package csr/approve):
//
//	request with the label of a cluster ─┬─ no label of an add-on: approve.JudgeCluster
//	                                     │     the agent itself asks ──> access review "renew" ──> approve
//	                                     │     a trusted bootstrap user asks ─────────────────────> approve
//	                                     └─ label of an add-on: approve.JudgeAddon, against what the hub lets this
//	                                        add-on register with on this cluster, never against a status that agents
//	                                        write
//	                                              the agent of that very cluster asks ────────────> approve
//	approved, without certificate, signer of the add-on with a CA ──────────────────────────────> sign
//
// Requests of an add-on that the program of an author manages need both programs, if they are for the API server of the
// hub. The hub manager confirms by approve.JudgeIdentity that the subject is that of the add-on, in a condition of the
// request; the program judges as above, and approves once it is there. Admission policies see that condition, so the
// token of the program alone approves nobody else (Reconciler.Identity).
//
// Nothing is ever denied: a request that is not approved waits, a person may still approve it, and an Event on it says
// once what is wrong. The Event is in the namespace "default", where kubectl describe finds it. The same is in the
// status of the request, as a condition of package csr, for the agent that asked: that cannot read the Event, and tells
// it on the ManagedCluster or ManagedClusterAddOn (comment.go). A request with such a condition is removed after a day,
// as Kubernetes removes those without any.
//
// A request whose cluster or add-on appears, is accepted or changes is judged again at once; one that waits for rights
// or for a Secret, which the hub may not watch, is looked at again after a time that grows with its age, up to some
// minutes.
//
// Nobody who creates many requests delays or silences another: a request is judged before those of requesters who have
// more unfinished ones, and Events and conditions are written about 250 unfinished requests of one requester; all are
// counted.
//
// What became of requests is counted: spokelet_csr_approved_total and spokelet_csr_signed_total by kind, "cluster" or
// "addon", and spokelet_csr_refused_total by kind and rule, which is the reason of the Event. A request counts once per
// rule however often it is looked at. The rule AwaitingApproval is the ordinary course of a first join without trusted
// bootstrap users; all others are worth a look.
//
// A person's approval stands for the requester, not for the content: a signer signs an approved request only when its
// content is the expected one, and even then copies nothing from it but the public key.
package approval
